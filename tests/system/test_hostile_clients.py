"""Clients that stall, vanish, lie about their body or say things twice, through Granian and real sockets."""

import json
import resource
import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

import psutil
import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from config.server.bodies import MAX_HELD_BYTES
from tests.service import Copy, Service, get_key, wait_for

MEBIBYTE = 1024 * 1024
USERS = "/api/v1/users"
BIG_FILE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


class Response:
    """What a server sent until it closed, or until the body was whole."""

    def __init__(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        self.status = int(stream.readline().split()[1])
        lines = iter(lambda: stream.readline().strip().decode(), "")
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        self.text = stream.read(int(self.headers.get("content-length", 0))).decode()

    @property
    def code(self) -> str:
        assert self.headers["request-id"]
        return json.loads(self.text)["error"]["code"]

    @property
    def message(self) -> str:
        return json.loads(self.text)["error"]["message"]


class Wire:
    """Sends bytes to a service as they are."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.key = f"X-API-Key: {key}"

    @contextmanager
    def sent(self, start: str, headers: Iterable[str] = (), body: bytes = b"") -> Iterator[socket.socket]:
        """A connection on which a request, or a part of one, was sent; `start` has no version."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            lines = [f"{start} HTTP/1.1", "Host: localhost", *headers]
            connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
            yield connection

    def ask(self, start: str, *headers: str, body: bytes = b"", ended: bool = False) -> Response:
        """Sends a request; `ended` says that nothing more comes. Returns the answer."""
        with self.sent(start, headers, body) as connection:
            if ended:
                connection.shutdown(socket.SHUT_WR)
            return Response(connection)

    def known(self, email: str) -> bool:
        answer = self.ask(f"GET {USERS}?email={quote(email)}", self.key)
        assert answer.status == 200
        return bool(json.loads(answer.text)["data"])


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


def test_http_2_is_not_spoken(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
        # A server that speaks it begins with its settings (RFC 9113, section 3.4).
        assert connection.recv(9)[3:4] != b"\x04"


@pytest.fixture(scope="module")
def impatient(checkout: Copy, first_start: list[str]) -> Iterator[Wire]:
    """A service of one worker that waits for a body a second and not longer."""
    code = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings';"
        "import config.server.rsgi; config.server.rsgi.SECONDS_FOR_A_BODY = 1.0;"
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


# --- Bodies without their end ----------------------------------------------------------------------------------------


def creation(email: str) -> bytes:
    return json.dumps({"name": "Cut", "email": email}).encode()


def test_body_without_its_end_is_not_executed(wire: Wire) -> None:
    body = creation("cut@example.com")
    headers = ["Content-Type: application/json", wire.key]
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n"
    short = wire.ask(f"POST {USERS}", "Content-Length: 500", *headers, body=body, ended=True)
    chunked = wire.ask(f"POST {USERS}", "Transfer-Encoding: chunked", *headers, body=chunk, ended=True)
    malformed = wire.ask(f"POST {USERS}", "Transfer-Encoding: chunked", *headers, body=chunk + b"what\r\n")
    assert [answer.code for answer in (short, chunked, malformed)] == ["VALIDATION_ERROR"] * 3
    for length, sent in (("Content-Length: 500", body), ("Transfer-Encoding: chunked", chunk)):
        with wire.sent(f"POST {USERS}", [length, *headers], sent):
            pass
    time.sleep(0.3)
    assert not wire.known("cut@example.com")


def test_whole_request_is_executed_although_nobody_reads_the_answer(wire: Wire) -> None:
    body = creation("left@example.com")
    headers = ["Content-Type: application/json", wire.key, f"Content-Length: {len(body)}"]
    with wire.sent(f"POST {USERS}", headers, body):
        # Who leaves before the request was handed on may find it executed or not.
        time.sleep(0.5)
    wait_for(lambda: wire.known("left@example.com"), seconds=3)


def test_body_in_very_many_chunks_is_refused(wire: Wire) -> None:
    headers = ["Content-Type: application/json", "Transfer-Encoding: chunked", wire.key]
    body = b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n"
    answer = wire.ask(f"POST {USERS}/1/posts", *headers, body=body)
    assert (answer.code, answer.message) == ("PAYLOAD_TOO_LARGE", "The body comes in more than 16384 pieces.")


@pytest.mark.parametrize(
    ("start", "limit"),
    [
        (f"POST {USERS}", 16 * 1024),
        (f"POST {USERS}/1/posts", 256 * 1024),
        (f"GET {USERS}/1/posts", 16 * 1024),
        ("PATCH /comments/1", 64 * 1024),
        ("DELETE /posts/1", 16 * 1024),
        ("POST /admin/users/user/import/", MEBIBYTE),
    ],
)
@pytest.mark.parametrize("chunked", [True, False])
def test_body_is_refused_when_it_is_longer_than_its_endpoint_can_use(
    wire: Wire, start: str, limit: int, *, chunked: bool
) -> None:
    body = b" " * (limit + 1)
    framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    answer = wire.ask(start, wire.key, "Content-Type: application/json", length, body=framed)
    assert (answer.code, answer.message) == ("PAYLOAD_TOO_LARGE", f"The body is longer than {limit} bytes.")


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


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip, chunked", 501), ("gzip", 400), ("chunked, gzip", 400), ("chunked, chunked", 400)]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_transfer_coding_other_than_chunked_is_refused(wire: Wire, coding: str, status: int, method: str) -> None:
    headers = [wire.key, "Content-Type: application/json", f"Transfer-Encoding: {coding}"]
    assert wire.ask(f"{method} {USERS}", *headers, body=b"2\r\n{}\r\n0\r\n\r\n").status == status


# --- Headers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["hex", "utf-7", "zlib", "rot13", "utf-16", "latin-1", '"utf-7"', "nothing"])
@pytest.mark.parametrize("parameter", ["charset", "Charset", "charset*"])
def test_charset_of_a_body_says_nothing_about_the_query(wire: Wire, charset: str, parameter: str) -> None:
    value = f"utf-8''{charset}" if parameter.endswith("*") else charset
    query = f"email=%2BAGE-&{'&'.join('a' * 999)}"
    answers = [
        wire.ask(f"GET {USERS}?{query}", wire.key, *headers)
        for headers in ([], [f"Content-Type: text/plain; {parameter}={value}"])
    ]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text


def test_api_key_in_the_query_cannot_be_hidden_by_a_charset_until_the_links_show_it(wire: Wire) -> None:
    answer = wire.ask(f"GET {USERS}?+AGE-pi_key=smuggled", wire.key, "Content-Type: text/plain; charset=utf-7")
    assert answer.status == 200
    assert "api_key" not in answer.text


def test_too_many_parameters_are_refused_whatever_the_charset(wire: Wire) -> None:
    answer = wire.ask(f"GET {USERS}?{'&' * 1001}", wire.key, "Content-Type: text/plain; charset=latin-1")
    assert answer.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("length", [300, 60_000])
def test_long_content_type_is_refused_at_once(wire: Wire, length: int) -> None:
    start = time.monotonic()
    assert wire.ask(f"GET {USERS}", wire.key, f"Content-Type: a/b{';' * length}").code == "UNSUPPORTED_MEDIA_TYPE"
    assert time.monotonic() - start < 1


def test_long_header_and_long_address_are_refused(wire: Wire) -> None:
    assert wire.ask(f"GET {USERS}", f"Accept: {'a' * 9000}").code == "VALIDATION_ERROR"
    assert wire.ask(f"GET {USERS}?a={'a' * 9000}", wire.key).code == "VALIDATION_ERROR"


def test_error_of_the_server_is_told_as_problem_details_where_they_are_asked_for(wire: Wire) -> None:
    answer = wire.ask(f"GET /{'a' * 9000}", "Accept: application/problem+json", "X-Request-Id: mine")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["request-id"] == "mine"
    assert json.loads(answer.text)["code"] == "VALIDATION_ERROR"


def test_underscores_do_not_stand_for_hyphens(wire: Wire) -> None:
    assert wire.ask(f"GET {USERS}", wire.key.replace("-", "_")).code == "UNAUTHENTICATED"


@pytest.mark.parametrize("repeated", ["Content-Type: application/json", "Host: localhost"])
def test_header_that_stands_twice_is_refused(wire: Wire, repeated: str) -> None:
    answer = wire.ask(f"POST {USERS}", wire.key, "Content-Type: text/plain", repeated, "Content-Length: 2", body=b"{}")
    assert answer.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("header", ["X-API-Key: a", "Authorization: Basic a"])
def test_two_credentials_are_a_conflict(wire: Wire, header: str) -> None:
    assert wire.ask(f"GET {USERS}", wire.key, header).code == "CREDENTIAL_CONFLICT"
    assert wire.ask(f"GET {USERS}", header, header).code == "CREDENTIAL_CONFLICT"


@pytest.mark.parametrize("method", ["get", "Get", "pOST", "delete"])
def test_method_in_other_letters_is_unknown(wire: Wire, method: str) -> None:
    answer = wire.ask(f"{method} {USERS}", wire.key)
    assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize("path", ["/%ff", "/%00", "/api/v1/users/%ff", "*", "/%C3%A9"])
def test_any_address_is_answered_in_the_form_of_the_contract(wire: Wire, path: str) -> None:
    assert wire.ask(f"GET {path}", wire.key).code == "NOT_FOUND"


def test_body_of_very_many_lists_is_refused_at_once(wire: Wire) -> None:
    body = b'{"a": [' + b"[]," * 80_000 + b"[]]}"
    start = time.monotonic()
    headers = ["Content-Type: application/json", f"Content-Length: {len(body)}", wire.key]
    assert wire.ask(f"POST {USERS}/1/posts", *headers, body=body).code == "PAYLOAD_TOO_LARGE"
    assert time.monotonic() - start < 1
