"""Clients that stall, vanish, lie about their body or say things twice, through Granian and real sockets."""

import resource
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from config.server.requests import MAX_HELD_BYTES
from tests.server.test_wire import creation
from tests.server.wire import MEBIBYTE, USERS, Response, Wire
from tests.service import Copy, Service, get_key, wait_for

BIG_FILE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


@pytest.fixture
def wire(service: Service, first_start: list[str]) -> Wire:
    return Wire(service.port, get_key(first_start))


def answers_at_once(service: Service) -> bool:
    """Whether all workers answer: the system chooses one for each connection."""
    start = time.monotonic()
    return all(service.status() == 200 for _ in range(8)) and time.monotonic() - start < 4


# --- Stalling --------------------------------------------------------------------------------------------------------


def test_clients_that_wait_to_send_too_much_are_refused_and_keep_nobody_waiting(service: Service, wire: Wire) -> None:
    headers = [f"Content-Length: {2 * MEBIBYTE}", "Expect: 100-continue", "Content-Type: application/json", wire.key]
    with ExitStack() as stack:
        waiting = [stack.enter_context(wire.sent(f"POST {USERS}", headers)) for _ in range(6)]
        assert [Response(connection).status for connection in waiting] == [413] * 6
        assert answers_at_once(service)


def test_200_clients_that_stall_in_their_body_keep_nobody_waiting(service: Service, wire: Wire) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(wire.sent(f"POST {USERS}", ["Content-Length: 10"], b"{"))
        assert answers_at_once(service)


def test_1100_idle_connections_keep_nobody_waiting(service: Service, wire: Wire) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with ExitStack() as stack:
        for _ in range(1100):
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=5))
        assert answers_at_once(service)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_do_not_read_a_big_answer_keep_nobody_waiting(service: Service, wire: Wire) -> None:
    with ExitStack() as stack:
        for _ in range(80):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", service.port))
            connection.sendall(f"GET {BIG_FILE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert answers_at_once(service)


@pytest.fixture(scope="module")
def impatient(checkout: Copy, first_start: list[str]) -> Iterator[Wire]:
    """A service of one worker that waits for a body a second and not longer."""
    code = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings';"
        "import config.asgi, config.server.requests; config.server.requests.MAX_SECONDS = 1.0;"
        "import manage; manage.main(['manage.py', 'serve'])"
    )
    running = Service(checkout, ".venv/bin/python", "-c", code, WORKERS="1")
    yield Wire(running.port, get_key(first_start))
    running.stop()


@pytest.mark.parametrize("length", ["Content-Length: 50", "Transfer-Encoding: chunked"])
def test_body_that_trickles_is_refused_after_its_time_and_the_connection_closed(impatient: Wire, length: str) -> None:
    start = time.monotonic()
    with impatient.sent(f"POST {USERS}", [length]) as connection:
        connection.sendall(b"1\r\n{\r\n")
        assert Response(connection).code == "VALIDATION_ERROR"
        assert 1 <= time.monotonic() - start < 3
        with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe, when depends on the system
            for _ in range(100):
                connection.sendall(b"1\r\n{\r\n")
                time.sleep(0.01)


def test_body_that_says_to_be_too_long_is_refused_while_it_trickles_and_its_connection_closed_after_its_time(
    impatient: Wire,
) -> None:
    start = time.monotonic()
    with impatient.sent(f"POST {USERS}", [f"Content-Length: {2 * MEBIBYTE}"]) as connection:
        connection.sendall(b"{")
        assert Response(connection).code == "PAYLOAD_TOO_LARGE"
        assert time.monotonic() - start < 1
        with pytest.raises(OSError):  # noqa: PT011, PT012 - reset or broken pipe, when depends on the system
            for _ in range(300):
                connection.sendall(b" ")
                time.sleep(0.01)
        assert time.monotonic() - start > 1


def test_body_that_comes_in_time_is_accepted_although_the_worker_is_busy_past_its_deadline(
    impatient: Wire, checkout: Copy
) -> None:
    headers = ["Content-Type: application/json", impatient.key]
    body, change = creation("busy@example.com"), b'{"name": "Busy"}'
    url = Cluster(get_accessible_folder(checkout.folder / ".data/postgresql")).url
    with psycopg.connect(url) as blocking, ExitStack() as stack:
        (user,) = blocking.execute("SELECT id FROM users_user WHERE role = 'user' LIMIT 1 FOR UPDATE").fetchone() or ()
        length = f"Content-Length: {len(body)}"
        coming = stack.enter_context(impatient.sent(f"POST {USERS}", [length, *headers], body[:5]))
        time.sleep(0.3)
        length = f"Content-Length: {len(change)}"
        busy = stack.enter_context(impatient.sent(f"PATCH {USERS}/{user}", [length, *headers], change))
        time.sleep(0.3)
        coming.sendall(body[5:])
        time.sleep(1.2)
        blocking.rollback()
        assert [Response(busy).status, Response(coming).status] == [200, 201]


def test_long_bodies_on_their_way_occupy_bounded_memory(checkout: Copy, first_start: list[str]) -> None:
    """Whoever sends them has not said who it is, as far as is known."""
    single = Service(checkout, WORKERS="1")
    wire = Wire(single.port, "unknown")
    try:
        (worker,) = single.workers()
        before = psutil.Process(worker).memory_info().rss
        with ExitStack() as opened:
            known = [f"Content-Length: {MEBIBYTE}"], b" " * (MEBIBYTE - 1)
            unknown = ["Transfer-Encoding: chunked"], b"100000\r\n" + b" " * (MEBIBYTE - 1)

            def send(headers: list[str], body: bytes) -> socket.socket:
                return opened.enter_context(wire.sent("POST /nowhere", headers, body))

            def send_until_refused(headers: list[str], body: bytes) -> socket.socket:
                """As much as there was room for is held, and not answered."""
                sent = (send(headers, body) for _ in range(10))
                return next(connection for connection in sent if select.select([connection], [], [], 1)[0])

            for _ in range(MAX_HELD_BYTES // MEBIBYTE):
                send(*known)
            for length, rest in ((known, b" "), (unknown, b" \r\n0\r\n\r\n")):
                connection = send_until_refused(*length)
                answer = Response(connection)
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                # What is left of the body is read, and then the next request.
                connection.sendall(rest + b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert Response(connection).status == 200
            assert wire.ask("POST /nowhere", "Content-Length: 2", body=b"{}").status == 404
            assert single.status() == 200
            assert psutil.Process(worker).memory_info().rss - before < 2 * MAX_HELD_BYTES
        wait_for(lambda: wire.ask("POST /nowhere", f"Content-Length: {MEBIBYTE}", body=b" " * MEBIBYTE).status == 404)
    finally:
        single.stop()
