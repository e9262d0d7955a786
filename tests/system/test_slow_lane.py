"""The slow lane when it is full, when clients leave it, and when its process stands still or dies."""

import asyncio
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from select import select
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg
import pytest
from django.test import RequestFactory

from config.http.lanes import Lane
from config.server import slow_lane, slow_process
from config.server.answers import Answer
from config.server.lanes import Lanes
from config.server.queues import Task
from config.server.slow_lane import MAX_OF_A_CALLER, MAX_WAITING, SlowLane
from tests.service import Copy, Service, wait_for

PASSWORD = "four plain words here"
# As many as one caller can have in the slow lane.
MAX_IN_FLIGHT = MAX_OF_A_CALLER + MAX_WAITING
LOGIN = ("POST", "/api/login", {"email": "nobody@example.net", "password": PASSWORD})
LIMIT = 10


@pytest.fixture(scope="module")
def single(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    """One worker, so that whatever is sent meets in it."""
    running = Service(checkout, WORKERS="1", MAX_IN_FLIGHT=str(MAX_IN_FLIGHT))
    yield running
    running.stop()


def send(service: Service, method: str, path: str, body: Any = None, **headers: str) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
    sent = None if body is None else json.dumps(body).encode()
    connection.request(method, path, sent, {**headers, **({"Content-Type": "application/json"} if sent else {})})
    return connection


def receive(connection: HTTPConnection) -> HTTPResponse:
    response = connection.getresponse()
    response.content = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


def ask(service: Service, method: str, path: str, body: Any = None, **headers: str) -> HTTPResponse:
    return receive(send(service, method, path, body, **headers))


def get_message(response: HTTPResponse) -> str:
    message: str = json.loads(response.content)["error"]["message"]  # type: ignore[attr-defined]
    return message


def get_slow_process(service: Service) -> psutil.Process:
    (worker,) = service.workers()
    (process,) = psutil.Process(worker).children()
    return process


@contextmanager
def standing_still(service: Service) -> Iterator[None]:
    """What is slow is received, and not gone on with."""
    process = get_slow_process(service)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def build_long_post(title: str) -> tuple[str, str, dict[str, str]]:
    """A request whose body is longer than what the fast lane takes."""
    return "POST", "/api/v1/users/1/posts", {"title": title, "body": "x" * 18_000}


def count_posts(database: psycopg.Connection, title: str) -> int:
    ((count,),) = database.execute("SELECT count(*) FROM posts_post WHERE title = %s", [title]).fetchall()
    return int(count)


def test_full_slow_lane_answers_at_once_and_those_who_leave_make_room_at_once(
    single: Service, key: dict[str, str], database: psycopg.Connection
) -> None:
    title = f"Left {time.monotonic_ns()}"
    assert ask(single, "GET", "/api/v1/users/1", **key).status == 200
    with standing_still(single):
        waiting = [send(single, *LOGIN) for _ in range(MAX_IN_FLIGHT)]
        wait_for(lambda: ask(single, "GET", "/api/v1/users").status == 429, seconds=4)
        # Another caller, who has the lane's last threads, and for whose next request one of those gives way at once.
        taken = [send(single, *build_long_post(title), **key) for _ in range(MAX_OF_A_CALLER)]
        time.sleep(0.3)
        assert not find_answered(waiting)
        left = send(single, *build_long_post(title), **key)
        wait_for(lambda: find_answered(waiting), seconds=1)
        refused = [receive(each) for each in find_answered(waiting)]
        for each in waiting:
            each.close()
        wait_for(lambda: ask(single, "GET", "/api/v1/users").status == 401, seconds=2)
        # It waited for one of the caller's threads.
        left.close()
        time.sleep(0.3)
    assert [each.status for each in refused] == [503]
    assert {get_message(each) for each in refused} == {"Too many slow requests wait. Try again."}
    assert {each.headers["Retry-After"] for each in refused} == {"1"}
    assert [receive(each).status for each in taken] == [201] * MAX_OF_A_CALLER
    assert count_posts(database, title) == MAX_OF_A_CALLER


def find_answered(connections: Iterable[HTTPConnection]) -> list[HTTPConnection]:
    return [each for each in connections if select([each.sock], [], [], 0)[0]]


def test_request_that_has_waited_for_longer_than_its_deadline_is_refused_unrun(
    single: Service, key: dict[str, str], database: psycopg.Connection
) -> None:
    title = f"Late {time.monotonic_ns()}"
    with standing_still(single):
        running = [send(single, *build_long_post(title), **key) for _ in range(MAX_OF_A_CALLER)]
        time.sleep(0.3)
        late = ask(single, *build_long_post(title), **key)
    assert (late.status, get_message(late)) == (503, "The request has waited too long. Try again.")
    assert late.headers["Retry-After"] == "1"
    assert [receive(each).status for each in running] == [201] * MAX_OF_A_CALLER
    assert count_posts(database, title) == MAX_OF_A_CALLER


def start_slow_lane(callers: Iterable[int], seconds: float = 0.05) -> tuple[SlowLane, list[Any]]:
    """A lane with four channels, and a request of each of the callers on its way, which takes so many seconds."""
    process: Any = SimpleNamespace(channels=range(4), watch=lambda *arguments: None)
    lane = SlowLane(asyncio.get_running_loop(), process)
    return lane, [start_slow_request(lane, caller, seconds) for caller in callers]


def start_slow_request(lane: SlowLane | Lanes, caller: object, seconds: float, statuses: Any = None) -> Any:
    """Its status is added to `statuses`."""

    def respond(status: int, *rest: object) -> None:
        if statuses is not None:
            statuses.append(status)

    environ = RequestFactory().get("/api/users").environ | {"seconds": seconds}
    task = Task(environ, SimpleNamespace(response_bytes=respond), caller)  # type: ignore[arg-type]
    return asyncio.ensure_future(lane._run_slow(task) if isinstance(lane, Lanes) else lane.run(task))


@pytest.fixture
def slow_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits longer than 16 that take 50 ms, four at a time."""

    async def send(loop: object, channel: object, environ: Any) -> slow_process.Outcome:
        await asyncio.sleep(environ["seconds"])
        return slow_process.Outcome(Answer(200, [], b""), {}, is_stream=False)

    monkeypatch.setattr(slow_process, "send", send)
    monkeypatch.setattr(slow_lane, "SECONDS_TO_WAIT", 0.2)


@pytest.mark.usefixtures("slow_answers")
def test_who_would_wait_in_vain_behind_others_is_refused_at_once() -> None:
    async def fill() -> list[tuple[int, bool]]:
        lane, running = start_slow_lane(range(60))
        looks = []
        while not all(each.done() for each in running):
            await asyncio.sleep(0)
            looks.append((len(lane.queue), lane.begins_in_time("new")))
            await asyncio.sleep(0.005)
        return [*looks, (len(lane.queue), lane.begins_in_time("new"))]

    first, *looks, last = asyncio.run(fill())
    # Nobody knows at first how long it takes.
    assert first == (56, True)
    assert not any(in_time for waiting, in_time in looks if 30 <= waiting <= 48)
    assert last == (0, True)


@pytest.mark.usefixtures("slow_answers")
def test_queue_of_one_caller_is_no_reason_to_refuse_another() -> None:
    async def fill() -> list[tuple[int, bool, bool]]:
        lane, running = start_slow_lane([1] * 30)
        looks = []
        while not all(each.done() for each in running):
            await asyncio.sleep(0.005)
            looks.append((len(lane.queue), lane.begins_in_time(1), lane.begins_in_time(2)))
        return looks

    looks = asyncio.run(fill())
    # Of one caller two are run at a time.
    assert not any(own for waiting, own, _ in looks if 12 <= waiting <= 26)
    assert all(other for *_, other in looks)


@pytest.mark.usefixtures("slow_answers")
def test_long_requests_of_one_caller_are_no_reason_to_refuse_short_ones_of_another() -> None:
    async def fill() -> list[bool]:
        lane, long = start_slow_lane([1] * 5, seconds=0.5)
        # Two have ended, and so have told how long they take; two more run.
        await asyncio.wait(long, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.01)
        looks, short = [], []
        for _ in range(12):
            looks.append(lane.begins_in_time(2))
            short.append(start_slow_request(lane, 2, 0.01))
            await asyncio.sleep(0)
        began = time.monotonic()
        await asyncio.gather(*short)
        assert time.monotonic() - began < 0.4
        await asyncio.gather(*long)
        return looks

    assert asyncio.run(fill()) == [True] * 12


@pytest.mark.usefixtures("slow_answers")
def test_full_queue_of_some_is_no_reason_to_refuse_another() -> None:
    async def fill() -> tuple[list[int], list[int]]:
        others: list[int] = []
        own: list[int] = []
        lanes = Lanes.__new__(Lanes)
        lanes._slow, _ = start_slow_lane([])
        lanes._queues = {Lane.SLOW: lanes._slow.queue}
        running = [start_slow_request(lanes, number % 3, 0.05, others) for number in range(MAX_WAITING + 4)]
        await asyncio.sleep(0)
        assert not lanes._slow.has_place(0)
        running += [start_slow_request(lanes, caller, 0.05, own) for caller in (3, 3, 4)]
        await asyncio.gather(*running)
        return others, own

    others, own = asyncio.run(fill())
    assert Counter(others) == {200: MAX_WAITING + 1, 503: 3}
    assert own == [200, 200, 200]


def test_slow_process_that_dies_is_started_again_with_its_worker_and_nothing_is_lost(
    single: Service, key: dict[str, str], database: psycopg.Connection
) -> None:
    title = f"Kept {time.monotonic_ns()}"
    assert ask(single, *build_long_post(title), **key).status == 201
    (worker,) = single.workers()
    process = get_slow_process(single)
    process.suspend()
    # Half of them are begun, the others wait.
    waiting = [send(single, *build_long_post("Lost"), **key) for _ in range(2 * MAX_OF_A_CALLER)]
    time.sleep(0.5)
    process.kill()
    began = time.monotonic()
    answers = [receive(each) for each in waiting]
    assert [each.status for each in answers] == [503] * len(waiting)
    assert time.monotonic() - began < 3
    assert Counter(map(get_message, answers)) == {
        "The request may have been lost half-way. Try again.": MAX_OF_A_CALLER,
        "The request was not begun. Try again.": MAX_OF_A_CALLER,
    }
    wait_for(lambda: single.workers() not in ([], [worker]) and single.status() == 200)
    assert ask(single, *build_long_post(title), **key).status == 201
    assert count_posts(database, title) == 2


def test_fault_of_a_thread_ends_the_process() -> None:
    """The worker would wait for the thread for ever."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        try:
            slow_process._serve_channel(None, theirs, [])
        finally:
            os._exit(0)
    with ours, theirs:
        ours.sendall((4).to_bytes(8) + b"what")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_slow_request_is_answered_although_the_service_is_stopped(checkout: Copy, first_start: list[str]) -> None:
    stopped = Service(checkout, WORKERS="1", RATE_LIMIT_LOGIN_ADDRESS="0", RATE_LIMIT_LOGIN_ACCOUNT="0")
    with standing_still(stopped):
        waiting = [send(stopped, *LOGIN) for _ in range(2 * MAX_OF_A_CALLER)]
        time.sleep(0.3)
        stopped.process.terminate()
        time.sleep(0.3)
    assert [receive(each).status for each in waiting] == [401] * len(waiting)
    assert stopped.stop() == 0


def test_wrong_passwords_at_once_are_told_to_be_wrong_no_more_often_than_the_limit(
    checkout: Copy, first_start: list[str]
) -> None:
    """Each of two workers has threads that hash at the same time."""
    flooded = Service(checkout, WORKERS="2", RATE_LIMIT_LOGIN_ADDRESS="0", RATE_LIMIT_LOGIN_ACCOUNT=str(LIMIT))
    login = ("POST", "/api/login", {"email": f"n{time.time_ns()}@example.net", "password": PASSWORD})
    try:
        # The whole flood falls into one minute.
        wait_for(lambda: time.time() % 60 < 40)
        with ThreadPoolExecutor(16) as pool:
            statuses = Counter(pool.map(lambda _: ask(flooded, *login).status, range(5 * LIMIT)))
    finally:
        flooded.stop()
    assert statuses == {401: LIMIT, 429: 4 * LIMIT}
