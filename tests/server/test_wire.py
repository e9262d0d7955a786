"""What is promised of a running service, and what becomes of requests as they stand on the wire: one start for all."""

import http.client
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import pytest

from tests.server.wire import MEBIBYTE, USERS, Wire
from tests.service import Service, get_key, temporary_copy

QUOTA = 300


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A first start, with two workers, in a checkout of its own."""
    with temporary_copy("service") as copy:
        running = Service(copy, RATE_LIMIT_PRINCIPAL=str(QUOTA))
        yield running
        assert running.stop() == 0
        assert copy.processes() == {}


@pytest.fixture(scope="module")
def wire(service: Service) -> Wire:
    return Wire(service.port, get_key(service.lines))


def test_first_start_prints_address_administrator_password_and_key(service: Service) -> None:
    assert [line.partition(": ")[0] for line in service.lines] == ["Administrator", "Password", "API key", "Address"]
    printed = dict(line.split(": ", 1) for line in service.lines)
    assert printed["Administrator"] == "admin@example.com"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", printed["Address"])
    assert service.status() == 200


def test_quota_of_a_user_is_exact_across_the_workers(service: Service, wire: Wire, one_minute: None) -> None:
    person = {"email": "quota@example.com", "password": "four plain words here"}
    wire.send_json(f"POST {USERS}", {"name": "Quota", **person})
    token = wire.send_json("POST /api/login", person)["data"]["access_token"]

    def ask(_: int) -> int:
        with closing(HTTPConnection("127.0.0.1", service.port, timeout=30)) as connection:
            connection.request("GET", USERS, headers={"Authorization": f"Bearer {token}"})
            return connection.getresponse().status

    with ThreadPoolExecutor(16) as pool:
        assert Counter(pool.map(ask, range(2 * QUOTA))) == {200: QUOTA, 429: QUOTA}
    assert service.status() == 200


@pytest.mark.parametrize("media_type", ["application/x-ndjson", "text/csv"])
def test_stream_is_the_whole_list(service: Service, wire: Wire, media_type: str) -> None:
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=30)) as connection:
        key = dict([wire.key.split(": ")])
        connection.request("GET", "/api/v2/orders?fields=id", headers={"Accept": media_type, **key})
        response = connection.getresponse()
        rows = response.read().splitlines()
        connection.request("GET", "/api/v1/orders?limit=1", headers=key)
        total = json.loads(connection.getresponse().read())["meta"]["total"]
    assert len(rows) == total + (media_type == "text/csv")


# --- Bodies


class Client(http.client.HTTPConnection):
    """One connection, kept open, and a key."""

    def __init__(self, port: int, key: str) -> None:
        super().__init__("127.0.0.1", port, timeout=10)
        self.headers = {"Content-Type": "application/json", "X-API-Key": key}

    def post(self, body: bytes, chunked: bool) -> tuple[int, bytes]:
        content = (body[start : start + 65536] for start in range(0, len(body), 65536)) if chunked else body
        headers = self.headers | ({"Transfer-Encoding": "chunked"} if chunked else {})
        self.request("POST", USERS, content, headers, encode_chunked=chunked)
        response = self.getresponse()
        return response.status, response.read()


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with closing(Client(service.port, get_key(service.lines))) as opened:
        yield opened


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [2 * MEBIBYTE, 20 * MEBIBYTE])
def test_refusal_of_a_body_reaches_a_client_that_sends_all_of_it_first(
    client: Client, size: int, chunked: bool
) -> None:
    # Several on one connection: what is left unread would be taken for the next request.
    assert [client.post(b" " * size, chunked)[0] for _ in range(3)] == [413] * 3


@pytest.mark.parametrize("chunked", [False, True])
def test_body_is_read_however_it_is_sent(client: Client, chunked: bool) -> None:
    status, body = client.post(b'{"name": "Ada", "email": "no address"}', chunked)
    assert status == 400
    assert b'"field":"email"' in body.replace(b" ", b"")


def test_body_is_refused_when_it_is_longer_than_its_endpoint_can_use(wire: Wire) -> None:
    for start, limit in [
        (f"POST {USERS}", 16 * 1024),
        (f"POST {USERS}/1/posts", 256 * 1024),
        (f"GET {USERS}/1/posts", 16 * 1024),
        ("PATCH /comments/1", 64 * 1024),
        ("DELETE /posts/1", 16 * 1024),
        ("POST /admin/users/user/import/", MEBIBYTE),
    ]:
        for chunked in [True, False]:
            body = b" " * (limit + 1)
            framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
            length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
            answer = wire.ask(start, wire.key, "Content-Type: application/json", length, body=framed)
            assert (answer.code, answer.message) == ("PAYLOAD_TOO_LARGE", f"The body is longer than {limit} bytes.")


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip, chunked", 501), ("gzip", 400), ("chunked, gzip", 400), ("chunked, chunked", 400)]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_transfer_coding_other_than_chunked_is_refused(wire: Wire, coding: str, status: int, method: str) -> None:
    headers = [wire.key, "Content-Type: application/json", f"Transfer-Encoding: {coding}"]
    assert wire.ask(f"{method} {USERS}", *headers, body=b"2\r\n{}\r\n0\r\n\r\n").status == status


def test_charset_of_a_body_says_nothing_about_the_query(wire: Wire) -> None:
    for parameter in ["charset", "Charset", "charset*"]:
        for charset in ["utf-7", "zlib", "nothing"]:
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


def creation(email: str) -> bytes:
    return json.dumps({"name": "Cut", "email": email}).encode()


@pytest.mark.parametrize(
    ("values", "status"),
    [(("this-once",), 201), (("a", "b"), 400), (("a", "a"), 400), (('"a', 'b"'), 400), (("", ""), 400), (("é",), 400)],
)
def test_only_one_idempotency_key_is_taken(wire: Wire, values: tuple[str, ...], status: int) -> None:
    keys = [f"Idempotency-Key: {value}" for value in values]
    sent = ["Content-Type: application/json", "Content-Length: 13", wire.key, *keys]
    answer = wire.ask("POST /payments", *sent, body=b'{"amount": 1}')
    assert answer.status == status
    assert ("IDEMPOTENCY_KEY_INVALID" in answer.text) is (status == 400)
