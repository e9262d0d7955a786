"""The slow lane when it is full, when clients leave it, and when its process stands still or dies."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from select import select
from typing import Any

import psutil
import psycopg
import pytest

from config.server.slow_lane import MAX_OF_A_CALLER, MAX_WAITING
from tests.service import Copy, Service, wait_for

PASSWORD = "four plain words here"
# As many as one caller can have in the slow lane.
MAX_IN_FLIGHT = MAX_OF_A_CALLER + MAX_WAITING
LOGIN = ("POST", "/api/login", {"email": "nobody@example.net", "password": PASSWORD})


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


def test_full_slow_lane_refuses_at_once_and_those_who_leave_make_room_at_once(
    single: Service, key: dict[str, str], database: psycopg.Connection
) -> None:
    title = f"Left {time.monotonic_ns()}"
    assert ask(single, "GET", "/api/v1/users/1", **key).status == 200
    with standing_still(single):
        waiting = [send(single, *LOGIN) for _ in range(MAX_IN_FLIGHT)]
        wait_for(lambda: ask(single, "GET", "/api/v1/users").status == 429, seconds=4)
        # Another caller, who has the lane's last threads, and finds no room to wait for one of them.
        taken = [send(single, *build_long_post(title), **key) for _ in range(MAX_OF_A_CALLER)]
        time.sleep(0.3)
        began = time.monotonic()
        refused = ask(single, *build_long_post(title), **key)
        assert time.monotonic() - began < 1
        assert not find_answered(waiting)
        for each in waiting:
            each.close()
        wait_for(lambda: ask(single, "GET", "/api/v1/users").status == 401, seconds=2)
    assert (refused.status, get_message(refused)) == (503, "Too many slow requests are waiting. Try again.")
    assert refused.headers["Retry-After"] == "1"
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


def test_slow_request_is_answered_although_the_service_is_stopped(checkout: Copy, first_start: list[str]) -> None:
    stopped = Service(checkout, WORKERS="1", RATE_LIMIT_LOGIN_ADDRESS="0", RATE_LIMIT_LOGIN_ACCOUNT="0")
    with standing_still(stopped):
        waiting = [send(stopped, *LOGIN) for _ in range(2 * MAX_OF_A_CALLER)]
        time.sleep(0.3)
        stopped.process.terminate()
        time.sleep(0.3)
    assert [receive(each).status for each in waiting] == [401] * len(waiting)
    assert stopped.stop() == 0
