"""More requests than the service can answer: what it still answers, and how soon it tells the rest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context

from tests.load.arrivals import Outcome, Plan, offer
from tests.load.cases import Found
from tests.load.client import wire
from tests.load.world import Person, Target, World

SECONDS = 4.0
CONNECTIONS_AT_THE_PEAK = 64
# As many as requests wait at the most, and as are refused meanwhile.
CONNECTIONS = 2000
FACTORS = (2.0, 5.0)
# A refusal takes about a tenth of the processor time of what it refuses. At five times the capacity there are four of
# them for each answer.
MIN_GOODPUT = {2.0: 0.7, 5.0: 0.3}
SECONDS_TO_RECOVER = 10.0
# Of the peak, once there is no overload any more.
SHARE_AFTERWARDS = 0.5
MAX_P99_AFTERWARDS = 0.1


def overload(world: World) -> Found:
    """Measures the peak, offers a multiple of it, and then half of it."""
    found, target = Found(), world.target
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        requests = _build_requests(target, target.people["abandoned"])
        _offer(pool, target, requests, None, CONNECTIONS_AT_THE_PEAK)
        peak = _rate(_offer(pool, target, requests, None, CONNECTIONS_AT_THE_PEAK))
        found.notes.append(f"peak {peak:,.0f} answers a second")
        for factor in FACTORS:
            _judge(found, factor, _offer(pool, target, requests, factor * peak, CONNECTIONS), peak)
            start = time.perf_counter()
            while not _is_normal(_offer(pool, target, requests, SHARE_AFTERWARDS * peak, 100, seconds=1.0)):
                if time.perf_counter() - start > SECONDS_TO_RECOVER:
                    break
            found.bound(f"normal {factor:g} × later after", time.perf_counter() - start, SECONDS_TO_RECOVER)
    return found


def _build_requests(target: Target, people: Sequence[Person]) -> Sequence[bytes]:
    """Two reads and a write of each of many people, none of whom has many under way."""
    port = target.port
    return [
        *chain.from_iterable(
            (
                wire(port, "GET", f"/api/v2/users/{person.id}", person.headers),
                wire(port, "GET", "/api/v2/posts?limit=20", person.headers),
                wire(port, "POST", "/api/v2/orders", person.headers, b'{"item": "Tea", "qty": 1}'),
            )
            for person in people
        )
    ]


def _offer(
    pool: Executor,
    target: Target,
    requests: Sequence[bytes],
    rate: float | None,
    connections: int,
    *,
    seconds: float = SECONDS,
) -> list[Outcome]:
    return pool.submit(offer, Plan(target.port, requests, rate, seconds, connections)).result().outcomes


def _rate(outcomes: Sequence[Outcome], seconds: float = SECONDS) -> float:
    return sum(_is_good(each) and each.due + each.seconds <= seconds for each in outcomes) / seconds


def _is_good(outcome: Outcome) -> bool:
    return outcome.status in {200, 201}


def _judge(found: Found, factor: float, outcomes: Sequence[Outcome], peak: float) -> None:
    found.statuses.update(outcome.status for outcome in outcomes)
    share = _rate(outcomes) / peak
    text = f"{factor:g} ×: goodput {share:.0%} of the peak"
    found.notes.append(text)
    if share < MIN_GOODPUT[factor]:
        found.broken.append(f"{text} < {MIN_GOODPUT[factor]:.0%}")
    for name, chosen in (
        ("503", [each for each in outcomes if each.status == 503]),
        ("answers", [each for each in outcomes if _is_good(each)]),
    ):
        median, p99 = (_percentile(chosen, part) * 1000 for part in (0.5, 0.99))
        found.notes.append(f"{name} after {median:.0f} ms in the median, 99th percentile {p99:.0f} ms")
    untold = sum(not each.told for each in outcomes if each.status == 503)
    others = {each.status for each in outcomes} - {200, 201, 503}
    if untold or others:
        found.broken.append(f"{factor:g} ×: {untold} 503 without Retry-After, and {others or 'nothing'} else")


def _percentile(outcomes: Sequence[Outcome], part: float) -> float:
    times = sorted(each.seconds for each in outcomes) or [0.0]
    return times[min(len(times) - 1, int(len(times) * part))]


def _is_normal(outcomes: Sequence[Outcome]) -> bool:
    return all(map(_is_good, outcomes)) and _percentile(outcomes, 0.99) <= MAX_P99_AFTERWARDS
