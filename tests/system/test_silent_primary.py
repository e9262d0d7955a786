"""Rows come from a standby while the primary is silent or lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psutil
import pytest

from config.postgresql.connections import MAX_SECONDS_OF_SILENCE
from config.postgresql.database_url import SECONDS_TO_CONNECT_TO_EACH
from tests.service import Copy, wait_for
from tests.system.deployment import MARGIN, deploy, frozen, numbers
from tests.system.standby import Pair, fetch, kill_machine, replicated


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated(synchronous_commit="on") as servers:
        yield servers


@pytest.mark.parametrize(
    ("fast_path", "longest"),
    # The reference asks a connection whether it lives; when that is cut, it makes a new one.
    [("true", 2.0), ("false", 1.0 + SECONDS_TO_CONNECT_TO_EACH + MARGIN)],
    ids=["fast path", "reference"],
)
def test_what_waits_for_a_primary_that_is_silent_is_read_without_it(
    pair: Pair, checkout: Copy, fast_path: str, longest: float
) -> None:
    def freeze() -> tuple[float, float]:
        """How long reads waited at the most, and writes once the primary was known to be away."""
        reads, refusals = [], []
        with frozen(pair.primary), ThreadPoolExecutor(8) as pool:
            began = time.monotonic()
            while (asked := time.monotonic()) - began < 6:
                body = {"name": f"Name {next(numbers)}"}
                written = pool.submit(deployment.call, deployment.user, "PATCH", deployment.path, body)
                read = [pool.submit(deployment.get, deployment.user) for _ in range(6)]
                assert not [answer for each in read if (answer := each.result()).status != 200]
                reads.append(time.monotonic() - asked)
                assert written.result().status == 503
                if asked > began + 3:
                    refusals.append(time.monotonic() - asked)
        wait_for(partial(deployment.writes, "N"))
        assert [deployment.read_name() for _ in range(8)] == ["N"] * 8
        return max(reads), max(refusals)

    variables = {"READ_ONLY_WITHOUT_PRIMARY": "true", "FAST_PATH": fast_path}
    with deploy(checkout, pair, pair.url, **variables) as deployment:
        wait_for(deployment.reads_from_replica)
        # On a busy machine one may be just connecting.
        waits, refusals = zip(*(freeze() for _ in range(2)), strict=True)
        assert min(waits) < longest
        assert min(refusals) < 0.5


def test_slow_reads_do_not_wait_for_a_silent_primary_and_short_ones_not_for_slow_ones(
    pair: Pair, checkout: Copy
) -> None:
    def read_slowly() -> tuple[int, float]:
        asked = time.monotonic()
        # Which may have a thousand lines.
        answer = deployment.call(deployment.user, "GET", deployment.path, **{"Content-Type": "application/x-ndjson"})
        return answer.status, time.monotonic() - asked

    variables = {"READ_ONLY_WITHOUT_PRIMARY": "true", "WORKERS": "1"}
    with deploy(checkout, pair, pair.url, **variables) as deployment, ThreadPoolExecutor(2) as pool:
        wait_for(deployment.reads_from_replica)
        # Whose connections are there, so that none of them is just connecting.
        for _ in range(8):
            assert [each.result()[0] for each in [pool.submit(read_slowly) for _ in range(2)]] == [200, 200]
        with frozen(pair.primary):
            began = time.monotonic()
            answers = [each.result() for each in [pool.submit(read_slowly) for _ in range(2)]]
            assert {status for status, _ in answers} <= {200, 503}
            assert max(seconds for _, seconds in answers) < 2
            wait_for(lambda: time.monotonic() - began > 2 * MAX_SECONDS_OF_SILENCE)
            (worker,) = deployment.service.workers()
            (slow,) = psutil.Process(worker).children()
            slow.suspend()
            try:
                asked = time.monotonic()
                assert deployment.get(deployment.user).status == 200
                assert time.monotonic() - asked < MARGIN
            finally:
                slow.resume()


@pytest.mark.parametrize("goes_on", [True, False])
def test_reads_without_a_primary(pair: Pair, checkout: Copy, goes_on: bool) -> None:
    with deploy(checkout, pair, pair.url, READ_ONLY_WITHOUT_PRIMARY=str(goes_on).lower()) as deployment:
        wait_for(deployment.reads_from_replica)
        name = deployment.rename(deployment.user)
        wait_for(deployment.reads_from_replica)
        kill_machine(pair.primary)
        began = time.monotonic()
        if goes_on:
            wait_for(lambda: [deployment.get(deployment.user).status for _ in range(8)] == [200] * 8)
            assert time.monotonic() - began < 2
            assert deployment.service.status() == 200
        while time.monotonic() - began < 4:
            asked = time.monotonic()
            assert deployment.get(deployment.user).status == (200 if goes_on else 503)
            refused = deployment.call(deployment.user, "PATCH", deployment.path, {"name": "N"})
            assert refused.status == 503
            assert int(refused.headers["Retry-After"]) >= 1
            assert time.monotonic() - asked < MARGIN
        assert deployment.call("urs_unknown", "GET", deployment.path).status in {401, 503}

        assert fetch(pair.standby, "SELECT pg_promote()")
        wait_for(partial(deployment.writes, name))
        assert [deployment.read_name() for _ in range(8)] == [name] * 8
