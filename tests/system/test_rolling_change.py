"""SIGHUP replaces the workers, by those of new code and new settings, and no request fails meanwhile."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import psycopg
import pytest

from config import VERSION
from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.releases.traffic import traffic
from tests.service import Copy, Service, ask, wait_for

TOKENS = ("the-token-of-before", "the-token-of-after")
RATE = 20.0


@pytest.fixture
def database(checkout: Copy, first_start: list[str]) -> Iterator[str]:
    """The embedded one, which another service keeps."""
    keeper = Service(checkout)
    yield Cluster(get_accessible_folder(checkout.folder / ".data/postgresql")).url
    keeper.stop()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKENS[0])
    return file


@pytest.fixture
def service(checkout: Copy, database: str, token: Path) -> Iterator[Service]:
    running = Service(checkout, LOCAL="true", DATABASE_URL=database, METRICS_TOKEN_FILE=str(token))
    yield running
    running.stop()


def get_version(service: Service, token: str) -> str:
    """That of the build, by `/metrics`; nothing where the token is refused."""
    answer = ask(service, "/metrics", Authorization=f"Bearer {token}")
    found = re.search(r'build_info{.*version="([^"]+)"', answer.content.decode())
    return found[1] if found else ""


@contextmanager
def new_release(copy: Copy) -> Iterator[str]:
    """A change of the code."""
    file = copy.folder / "config/__init__.py"
    text = file.read_text()
    file.write_text(text.replace(VERSION, "99.0.0"))
    yield "99.0.0"
    file.write_text(text)


def test_workers_are_replaced_under_load_without_a_failed_request(
    service: Service, token: Path, tmp_path: Path
) -> None:
    key = service.copy.manage("create_api_key", "admin@example.com").stdout.strip()
    assert get_version(service, TOKENS[0]) == VERSION
    before = service.workers()

    def is_replaced() -> bool:
        # Asked on a connection of its own, and not without a pause.
        time.sleep(0.1)
        assert service.status() == 200
        return len(service.workers()) == len(before) and not set(before) & set(service.workers())

    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        traffic(pool, service, key, 1, rate=RATE, stop=tmp_path / "stop") as seen,
        new_release(service.copy) as version,
    ):
        token.write_text(TOKENS[1])
        service.process.send_signal(signal.SIGHUP)
        wait_for(is_replaced, 60)
        time.sleep(1)
        for _ in range(10):
            assert get_version(service, TOKENS[1]) == version
            assert get_version(service, TOKENS[0]) == ""
    outcomes = seen.offered.outcomes
    assert {outcome.status for outcome in outcomes} == {200, 201}
    assert len(outcomes) > 100
    assert max(outcome.seconds for outcome in outcomes) < 5
    assert service.process.poll() is None


def test_release_that_does_not_start_changes_nothing(service: Service, token: Path) -> None:
    before = service.workers()
    token.write_text("too short")
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "The reload failed" in service.log.read_text())
    assert "METRICS_TOKEN: Must be at least 16 characters" in service.log.read_text()
    assert service.workers() == before
    assert get_version(service, TOKENS[0]) == VERSION
    # Nor does it the next time, when everything is right again.
    token.write_text(TOKENS[0])
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not set(before) & set(service.workers()) and len(service.workers()) == len(before), 60)
    assert service.stop() == 0


def test_stop_in_the_middle_of_a_change_ends_what_was_begun(service: Service, database: str) -> None:
    key = service.copy.manage("create_api_key", "admin@example.com").stdout.strip()
    statuses: list[int] = []
    with psycopg.connect(database) as blocking:
        row = blocking.execute("SELECT id FROM users_user WHERE role = 'user' LIMIT 1 FOR UPDATE").fetchone()
        assert row
        path, body, headers = f"/api/v1/users/{row[0]}", b'{"name": "Waited"}', {"Content_Type": "application/json"}
        waiting = threading.Thread(
            target=lambda: statuses.append(ask(service, path, "PATCH", body, X_API_Key=key, **headers).status)
        )
        service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "SERVE_PREDECESSOR" in Path(f"/proc/{service.process.pid}/environ").read_text(), 60)
        # The workers of before serve it. Not sooner: it waits for a lock for 5 s at the most.
        waiting.start()
        time.sleep(0.3)
        service.process.terminate()
        time.sleep(1)
        blocking.rollback()
    waiting.join()
    assert statuses == [200]
    assert service.stop() == 0


def test_metrics_go_on_with_the_counts_of_before_and_tell_a_change_from_a_death(service: Service) -> None:
    def count(series: str = r'http_requests_total{.*route="/health/live".*}') -> float:
        text = ask(service, "/metrics", Authorization=f"Bearer {TOKENS[0]}").content.decode()
        return sum(float(value) for value in re.findall(rf"{series} (.+)", text))

    for _ in range(20):
        assert ask(service, "/health/live").status == 200
    before, workers = count(), service.workers()
    assert before >= 20
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not set(workers) & set(service.workers()) and len(service.workers()) == len(workers), 60)
    assert count() == before
    # Two processes for each worker, once at the start and once at the change.
    assert count('worker_starts_total{cause="plan".*}') == 4 * len(workers)
    assert count('worker_starts_total{cause="death".*}') == 0


def test_workers_of_an_embedded_database_are_replaced_alone(checkout: Copy, first_start: list[str]) -> None:
    running = Service(checkout)
    try:
        before, postmaster = running.workers(), checkout.postmaster()
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: not set(before) & set(running.workers()) and len(running.workers()) == len(before), 60)
        assert checkout.postmaster() == postmaster
        wait_for(lambda: running.status() == 200)
    finally:
        running.stop()
