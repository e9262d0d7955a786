"""The small process that `serve` becomes: it replaces workers that die, and loses no request that comes meanwhile."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.runtime.conftest import DEADLINE, Copy, Service, wait_for
from tests.runtime.test_workers import ask, is_alive

REQUESTS = 300
MEGABYTES = 200
PATHS = (
    "/api/v1/users",
    "/api/v1/users?sort=name&page={0}",
    "/api/v1/users?status=inactive&role=support",
    "/api/v1/users/{0}",
    "/api/v1/users/{0}/orders",
)


@pytest.fixture
def started(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    running = Service(checkout)
    yield running
    running.stop()


def kill(service: Service, workers: list[int]) -> None:
    """Kills workers, and waits until they are gone and others are on their way."""
    number = len(service.workers())
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not set(workers) & set(service.workers()) and len(service.workers()) == number)


def rss(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def test_supervisor_and_two_workers_take_less_than_200_megabytes_in_use(
    started: Service, first_start: list[str]
) -> None:
    key = dict(line.split(": ", 1) for line in first_start)["API key"]
    for number in range(REQUESTS // len(PATHS)):
        for path in PATHS:
            assert ask(started, path.format(number % 20 + 1), X_API_Key=key).status == 200
    assert rss(started.process.pid) < 20
    assert sum(rss(pid) for pid in [started.process.pid, *started.workers()]) < MEGABYTES


def test_all_workers_killed_at_once_delay_requests_and_refuse_none(started: Service) -> None:
    kill(started, started.workers())
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: ask(started, "/health/live").status, range(64)))
    assert answers == [200] * 64


def test_worker_that_cannot_start_leaves_its_requests_to_the_others_until_it_can(started: Service) -> None:
    code = started.copy.folder / "config/rsgi.py"
    away = code.rename(code.with_suffix(".away"))
    try:
        victim, other = started.workers()
        kill(started, [victim])
        failing = set(started.workers()) - {other}
        wait_for(lambda: not failing & set(started.workers()))
        wait_for(lambda: all(is_alive(started) for _ in range(20)))
    finally:
        away.rename(code)
    wait_for(lambda: len(started.workers()) == 2)
    kill(started, [other])
    assert all(is_alive(started) for _ in range(20))


def test_stop_while_a_worker_is_starting_leaves_no_process(started: Service) -> None:
    kill(started, started.workers()[:1])
    assert started.stop() == 0
    assert started.copy.processes() == {}


def test_killed_supervisor_takes_a_worker_along_that_is_starting(started: Service) -> None:
    kill(started, started.workers()[:1])
    workers = set(started.workers())
    started.stop(signal.SIGKILL)
    wait_for(lambda: not workers & started.copy.processes().keys(), seconds=5)


def test_port_is_closed_to_clients_and_kept_from_others_while_the_last_requests_end(started: Service) -> None:
    with socket.create_connection(("127.0.0.1", started.port), timeout=DEADLINE) as client:
        client.sendall(b"POST /api/v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        wait_for(lambda: started.status() == 200)
        started.process.terminate()
        wait_for(lambda: started.status() == 0)
        second = started.copy.manage("serve", PORT=str(started.port))
        assert "Cannot listen" in second.stderr
        assert started.process.poll() is None
        client.sendall(b'"item":1}')
        assert client.recv(100).startswith(b"HTTP/1.1 401")
