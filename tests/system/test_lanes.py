"""No request stops another one: short ones are answered while others wait, hash, or are far too many."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import INCOMPRESSIBLE_POSTS, Copy, Reply, Service, ask, wait_for
from tests.system.deployment import frozen

PASSWORD = "four plain words here"
MAX_IN_FLIGHT = 4


@pytest.fixture(scope="module")
def single(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    """One worker, so that whatever is sent meets in it."""
    running = Service(checkout, WORKERS="1", MAX_IN_FLIGHT=str(MAX_IN_FLIGHT), RATE_LIMIT_PRINCIPAL="10000")
    yield running
    running.stop()


@pytest.fixture
def other_key(single: Service) -> dict[str, str]:
    """Of an ordinary user."""
    return {"X-API-Key": single.copy.manage("create_api_key", "olena.shevchenko@example.org").stdout.strip()}


@contextmanager
def locked(database: psycopg.Connection, *users: int) -> Iterator[None]:
    """Holds the rows of users against every other writer."""
    with database.transaction():
        database.execute("SELECT FROM users_user WHERE id = ANY(%s) FOR UPDATE", [[*users]])
        yield


def count_payments(database: psycopg.Connection) -> int:
    found = database.execute("SELECT count(*) FROM payments_payment").fetchone()
    assert found
    return int(found[0])


def in_background(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function, *args, **options)
    pool.shutdown(wait=False)
    return future


def test_write_that_waits_for_a_lock_delays_no_other_request(
    single: Service, key: dict[str, str], other_key: dict[str, str], database: psycopg.Connection
) -> None:
    with locked(database, 5):
        waiting = in_background(ask, single, "/api/v1/users/5", "PATCH", {"name": "Later"}, **key)
        time.sleep(0.3)
        assert not waiting.done()
        seconds = [ask(single, "/api/v1/users/1", **other_key).seconds for _ in range(20)]
        assert statistics.median(seconds) < 0.1
        assert ask(single, "/health/live").status == 200
        assert not waiting.done()
    assert (waiting.result().status, waiting.result().json()["data"]["name"]) == (200, "Later")


def test_payment_that_waits_in_both_lanes_is_made_once(
    single: Service, key: dict[str, str], database: psycopg.Connection
) -> None:
    """The row that the payment refers to is locked; the same payment is sent again and again meanwhile."""
    before = count_payments(database)
    headers = {"Idempotency-Key": f"lanes-{time.monotonic_ns()}", **key}

    def pay(number: int) -> Reply:
        time.sleep(number * 0.05)
        return ask(single, "/api/v1/payments", "POST", {"amount": 1.5, "user_id": 7}, **headers)

    with ThreadPoolExecutor(MAX_IN_FLIGHT) as pool:
        with locked(database, 7):
            sent = [pool.submit(pay, number) for number in range(MAX_IN_FLIGHT)]
            time.sleep(0.5)
        answers = [each.result() for each in sent]
    statuses = {each.status for each in answers}
    assert statuses <= {201, 409}
    assert 201 in statuses
    assert count_payments(database) == before + 1
    assert pay(0).headers["Idempotent-Replayed"] == "true"


def test_log_ins_delay_no_other_request(single: Service, other_key: dict[str, str]) -> None:
    ended = threading.Event()

    def log_in() -> None:
        while not ended.is_set():
            ask(single, "/api/login", "POST", {"email": "nobody@example.net", "password": PASSWORD})

    with ThreadPoolExecutor(MAX_IN_FLIGHT) as pool:
        for _ in range(MAX_IN_FLIGHT):
            pool.submit(log_in)
        time.sleep(0.2)
        seconds = sorted(ask(single, "/api/v1/users/1", **other_key).seconds for _ in range(100))
        ended.set()
    assert seconds[50] < 0.1


def test_long_pages_in_gzip_delay_no_other_request(
    single: Service, key: dict[str, str], other_key: dict[str, str], database: psycopg.Connection
) -> None:
    """To code a page takes half a second: a hundred posts of text that is hard to compress."""
    database.execute(INCOMPRESSIBLE_POSTS, [9, 100])
    ended = threading.Event()

    def read() -> set[tuple[int, str | None]]:
        answers = set()
        while not ended.is_set():
            page = ask(single, "/api/v2/users/9/posts?limit=100", **key, **{"Accept-Encoding": "gzip"})
            answers.add((page.status, page.headers["Content-Encoding"]))
        return answers

    with ThreadPoolExecutor(2) as pool:
        reading = [pool.submit(read) for _ in range(2)]
        time.sleep(0.2)
        seconds = sorted(ask(single, "/api/v1/users/1", **other_key).seconds for _ in range(100))
        ended.set()
    database.execute("DELETE FROM posts_post WHERE title = 'Incompressible'")
    assert {answer for each in reading for answer in each.result()} == {(200, "gzip")}
    assert seconds[50] < 0.1


def test_caller_with_too_many_requests_is_refused_and_nobody_else(
    single: Service, key: dict[str, str], other_key: dict[str, str], database: psycopg.Connection
) -> None:
    ask(single, "/api/v1/users/8", **key)
    with ThreadPoolExecutor(3 * MAX_IN_FLIGHT) as pool, locked(database, 8):
        sent = [
            pool.submit(ask, single, "/api/v2/users/8", "PATCH", {"name": "Later"}, **key)
            for _ in range(2 * MAX_IN_FLIGHT)
        ]
        wait_for(lambda: sum(each.done() for each in sent) == MAX_IN_FLIGHT)
        refused = [each.result() for each in sent if each.done()]
        assert ask(single, "/api/v1/users/1", **other_key).status == 200
        assert ask(single, "/health/live").status == 200
    for response in refused:
        assert response.status == 429
        assert response.json()["error"]["code"] == "RATE_LIMITED"
        assert response.headers["RateLimit-Policy"] == f'"inflight";q={MAX_IN_FLIGHT};qu="concurrent-requests"'
        assert response.headers["RateLimit"] == '"inflight";r=0'
        assert response.headers["Retry-After"] == "1"
        assert response.headers["API-Version"] == "2"
        assert response.headers["Request-Id"]
        assert response.seconds < 0.5
    assert [each.result().status for each in sent].count(200) == MAX_IN_FLIGHT


@contextmanager
def stalled_commits(database: psycopg.Connection) -> Iterator[None]:
    """As behind a slow disk: each COMMIT waits, here for a standby that there is not."""
    database.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    database.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        database.execute("ALTER SYSTEM RESET synchronous_standby_names")
        database.execute("SELECT pg_reload_conf()")


def test_reads_go_on_while_a_commit_waits(
    single: Service, key: dict[str, str], other_key: dict[str, str], database: psycopg.Connection
) -> None:
    longest, statuses = 0.0, []

    def pay(number: int) -> int:
        headers = {"Idempotency-Key": f"stalled-{number}", **other_key}
        return ask(single, "/api/v1/payments", "POST", {"amount": number}, **headers).status

    with ThreadPoolExecutor(2) as pool, stalled_commits(database):
        payments = [pool.submit(pay, number) for number in range(1, 3)]
        began = time.monotonic()
        while time.monotonic() - began < 5:
            answer = ask(single, "/api/v1/users/1", **key)
            statuses.append(answer.status)
            longest = max(longest, answer.seconds)
    assert {*statuses} == {200}
    assert longest < 0.5
    assert len(statuses) > 50
    assert {payment.result() for payment in payments} <= {201, 503}


def test_health_is_answered_while_requests_wait_for_a_silent_database(single: Service, key: dict[str, str]) -> None:
    assert single.status() == 200
    with frozen(Cluster(get_accessible_folder(single.copy.folder / ".data/postgresql"))):
        waiting = in_background(ask, single, "/api/v1/users/1", **key)
        time.sleep(4)
        # What waits was cut off, and what comes now waits elsewhere.
        also_waiting = in_background(ask, single, "/api/v1/users/1", **key)
        time.sleep(0.5)
        assert single.status() == 503
        began = time.monotonic()
        assert ask(single, "/health/live").status == 200
        assert time.monotonic() - began < 1
        assert waiting.result().status == 503
    wait_for(lambda: single.status() == 200, seconds=10)
    assert also_waiting.result().status in {200, 503}
    wait_for(lambda: ask(single, "/api/v1/users/1", **key).status == 200, seconds=10)
