"""How connections that stay open are divided among the workers."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Event
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from config.server.answers import Answer
from config.server.balance import SECONDS_BETWEEN_LOOKS, SECONDS_TO_TRUST, Balance, Loads, count_excess
from config.server.draining import Drain
from tests.service import Service, get_key, wait_for

CONNECTIONS = 12
LOOP: Any = SimpleNamespace(call_later=lambda *arguments: None)
ANSWER = Answer(200, [], b"")


@pytest.fixture(scope="module")
def key(first_start: list[str]) -> dict[str, str]:
    return {"X-API-Key": get_key(first_start)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its `now` is the time of the monotonic clock."""
    clock = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr("config.server.balance.time.monotonic", lambda: clock.now)
    return clock


def get_workers(service: Service) -> dict[int, int]:
    """The process ids of the workers, by the ports of the clients that are connected to them."""
    return {
        connection.raddr.port: pid
        for pid in service.workers()
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.raddr and connection.laddr.port == service.port
    }


@contextmanager
def connected_to_one_worker(service: Service) -> Iterator[list[HTTPConnection]]:
    found: list[HTTPConnection] = []
    worker = service.workers()[0]
    while len(found) < CONNECTIONS:
        made = HTTPConnection("127.0.0.1", service.port, timeout=30)
        made.request("GET", "/health/live")
        made.getresponse().read()
        # It may be one of those that are closed, after the test before.
        if made.sock and get_workers(service)[made.sock.getsockname()[1]] == worker:
            found.append(made)
        else:
            made.close()
    yield found
    for each in found:
        each.close()


def keep_asking(connection: HTTPConnection, headers: dict[str, str], end: Event, pause: float) -> int:
    """How often an answer said that the connection is closed. Where it is closed otherwise, an error is raised."""
    connection.auto_open = 0
    closed = 0
    while not end.wait(pause):
        connection.request("GET", "/api/v1/users?limit=50", headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        if response.headers["Connection"] == "close":
            closed += 1
            connection.connect()
    return closed


def test_worker_that_has_all_busy_connections_gives_some_away(service: Service, key: dict[str, str]) -> None:
    def divide() -> list[int]:
        return sorted(Counter(get_workers(service).values()).values())

    with connected_to_one_worker(service) as connections, ThreadPoolExecutor(CONNECTIONS) as pool:
        assert divide() == [CONNECTIONS]
        end = Event()
        asking = [pool.submit(keep_asking, connection, key, end, 0.0) for connection in connections]
        try:
            wait_for(lambda: len(divide()) == 2 and min(divide()) >= CONNECTIONS // 4)
        finally:
            end.set()
        closed = sum(each.result() for each in asking)
    assert closed >= CONNECTIONS // 4


def test_connections_that_have_little_to_do_stay(service: Service, key: dict[str, str]) -> None:
    with connected_to_one_worker(service) as connections, ThreadPoolExecutor(CONNECTIONS) as pool:
        end = Event()
        asking = []
        # Not all at the same moment: that would be much to do for this moment.
        for connection in connections:
            asking.append(pool.submit(keep_asking, connection, key, end, 0.3))
            time.sleep(0.3 / CONNECTIONS)
        time.sleep(8 * SECONDS_BETWEEN_LOOKS)
        end.set()
        assert [each.result() for each in asking] == [0] * CONNECTIONS


@pytest.mark.parametrize(
    ("load", "others", "excess"),
    [
        (9.0, [3.0], 3),
        (9.0, [1.0, 5.0], 4),
        (1.0, [0.0], 0),  # one connection: it would only go back and forth
        (1.9, [0.0], 1),
        (9.0, [7.0], 0),  # they are nearly even
        (500.0, [460.0], 0),
        (3.0, [9.0], 0),
        (5.0, [0.0, 9.0, 9.0], 0),  # more than one other, and less than the average
        (9.0, [], 0),  # alone, or the others told nothing lately
        (2.0, [0.0] + [1.0] * 29, 1),
    ],
)
def test_excess_is_what_is_above_the_average_where_another_has_clearly_less(
    load: float, others: list[float], excess: int
) -> None:
    assert count_excess(load, [load, *others]) == excess


@pytest.mark.parametrize("under_way", [0.75, 1.0])
@pytest.mark.parametrize("workers", [2, 3, 8, 32])
def test_any_division_comes_to_rest(workers: int, under_way: float) -> None:
    chance = random.Random(workers)  # noqa: S311 - the same in each run
    for count in [1, workers - 1, workers, 2 * workers - 1, *chance.choices(range(1, 20 * workers), k=20)]:
        connections = Counter(chance.choices(range(workers), k=count))
        for _ in range(200):
            loads = [under_way * connections[worker] for worker in range(workers)]
            closed = {worker: count_excess(loads[worker], loads) for worker in range(workers)}
            if not any(closed.values()):
                break
            connections.subtract(closed)
            connections.update(chance.choices(range(workers), k=sum(closed.values())))
        else:
            pytest.fail(f"Connections are closed for ever: {connections}")


def test_load_that_was_told_long_ago_is_that_of_nobody(clock: Any) -> None:
    loads = Loads(2)
    assert loads.look() == []
    loads.tell(0, 1.5)
    clock.now += 0.9 * SECONDS_TO_TRUST
    loads.tell(1, 2.5)
    assert loads.look() == [1.5, 2.5]
    clock.now += 0.2 * SECONDS_TO_TRUST
    assert loads.look() == [2.5]


def test_next_answers_close_their_connections_and_no_more(clock: Any) -> None:
    loads, drain = Loads(2), Drain()
    balance = Balance(loads, 0, drain)
    for _ in range(4):
        balance.begin()
    clock.now += SECONDS_BETWEEN_LOOKS
    loads.tell(1, 0.0)
    balance.look(LOOP)
    assert loads.look() == [pytest.approx(4.0), 0.0]
    answers = [drain.mark(ANSWER) for _ in range(5)]
    assert [("Connection", "close") in answer.headers for answer in answers] == [True, True, False, False, False]


def test_load_is_how_many_requests_are_under_way_on_average(clock: Any) -> None:
    loads = Loads(1)
    balance = Balance(loads, 0, Drain())
    balance.begin()
    clock.now += SECONDS_BETWEEN_LOOKS / 2
    balance.begin()
    clock.now += SECONDS_BETWEEN_LOOKS / 2
    balance.look(LOOP)
    assert loads.look() == [pytest.approx(1.5)]
    # One that hangs has not ended at the next look either.
    balance.end()
    clock.now += SECONDS_BETWEEN_LOOKS
    balance.look(LOOP)
    assert loads.look() == [pytest.approx(1.0)]
    balance.end()
    clock.now += SECONDS_BETWEEN_LOOKS
    balance.look(LOOP)
    assert loads.look() == [pytest.approx(0.0)]


def test_what_was_not_closed_until_the_next_look_stays() -> None:
    drain = Drain()
    drain.close_next(3)
    drain.close_next(0)
    assert drain.mark(ANSWER) == ANSWER


@pytest.mark.parametrize("is_silent", [False, True], ids=["ends", "finds the database silent"])
def test_worker_that_refuses_attracts_no_connections_and_closes_none(
    monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    loads, drain = Loads(2), Drain()
    balance = Balance(loads, 1, drain)
    drain.close_next(1)
    monkeypatch.setattr("config.server.balance.probe", SimpleNamespace(is_silent=is_silent))
    drain.is_on = not is_silent
    balance.look(LOOP)
    assert loads.look() == []
    drain.is_on = False
    assert drain.mark(ANSWER) == ANSWER


def test_worker_that_hangs_attracts_no_connections(clock: Any) -> None:
    loads, other_drain = Loads(2), Drain()
    hanging, other = Balance(loads, 0, Drain()), Balance(loads, 1, other_drain)
    for _ in range(8):
        hanging.begin()
        other.begin()
    for _ in range(8):
        clock.now += SECONDS_BETWEEN_LOOKS
        for _ in range(8):
            other.end()
            other.begin()
        hanging.look(LOOP)
        other.look(LOOP)
        assert other_drain.mark(ANSWER) == ANSWER
