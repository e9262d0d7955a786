"""Refusals of requests that are not run: the same bytes at a fraction of the calls when they are made again."""

import cProfile
import gc
import pstats
import weakref
from io import BytesIO
from typing import Any

import pytest

from config.http.errors import DomainError, ErrorCode
from config.server import answers

# The line in the log is a third of them.
MAX_CALLS = 70
REQUESTS: list[dict[str, str]] = [
    {},
    {"PATH_INFO": "/api/v2/posts"},
    {"PATH_INFO": "/api/v9/posts"},
    {"PATH_INFO": "/api/v1/posts/1"},
    {"PATH_INFO": "/api/v1/posts/1", "HTTP_ACCEPT": "application/problem+json"},
    {"PATH_INFO": "/api/v1/posts/27"},
    {"PATH_INFO": "/api/v1/posts/27", "HTTP_ACCEPT": "application/problem+json"},
    {"PATH_INFO": "/api/v2/posts/27", "QUERY_STRING": "fields=id"},
    {"PATH_INFO": "/api/v9/posts/27"},
    {"PATH_INFO": "/users/1/orders"},
    {"PATH_INFO": "/users/27/orders"},
    {"PATH_INFO": "/users/27/posts"},
    {"PATH_INFO": "/users/27/posts/"},
    {"PATH_INFO": "/api/users/27"},
    {"PATH_INFO": "/oauth/token", "REQUEST_METHOD": "POST"},
    {"REQUEST_METHOD": "post"},
    {"QUERY_STRING": "limit=100"},
    {"QUERY_STRING": "version=2"},
    {"QUERY_STRING": "api%5Fkey=secret&limit=7"},
    {"HTTP_ACCEPT": "application/problem+json"},
    {"HTTP_HOST": "elsewhere.example"},
    {"HTTP_ORIGIN": "https://elsewhere.example"},
]


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(answers, "_refusals", {})


def build_environ(**variables: str) -> dict[str, Any]:
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/api/v1/posts",
        "QUERY_STRING": "",
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": "0",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT": "application/json",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
    }
    return environ | variables


def refuse(message: str = "Too many.", **variables: str) -> answers.Answer:
    return answers.refuse_at_once(build_environ(**variables), answers.build_overload(message))


def test_refusal_is_the_same_again_but_for_its_request_id():
    fresh = []
    for variables in REQUESTS:
        answers._refusals.clear()
        fresh.append(refuse(HTTP_X_REQUEST_ID="own", **variables))
    answers._refusals.clear()
    for _ in range(2):
        for variables, expected in zip(REQUESTS, fresh, strict=True):
            again = refuse(HTTP_X_REQUEST_ID="own", **variables)
            assert (again.status, sorted(again.headers), again.body) == (
                expected.status,
                sorted(expected.headers),
                expected.body,
            )
    names = [dict(refuse().headers)["Request-Id"] for _ in range(3)]
    assert len({*names, "own"}) == 4


def test_refusals_for_different_reasons_are_different():
    excess = DomainError(ErrorCode.RATE_LIMITED, "Too many.", headers={"Retry-After": "1"})
    limited = answers.refuse_at_once(build_environ(), excess)
    assert [refuse().status, limited.status, refuse("Else.").status] == [503, 429, 503]
    assert refuse("Else.").body != refuse().body


def test_refusal_that_is_made_again_takes_few_calls():
    for _ in range(3):
        refuse(QUERY_STRING="limit=100")
    environ, problem = build_environ(QUERY_STRING="limit=100"), answers.build_overload("Too many.")
    profile = cProfile.Profile()
    profile.runcall(answers.refuse_at_once, environ, problem)
    assert 0 < pstats.Stats(profile).total_calls <= MAX_CALLS  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["api_key", "api%5Fkey"])
def test_secret_of_a_refused_request_is_not_kept(name):
    answer = refuse(QUERY_STRING=f"{name}=secret")
    assert "secret" not in str(answer) + str(answers._refusals)


def test_number_of_kept_refusals_is_bounded():
    for number in range(answers.MAX_REFUSALS + 3):
        refuse(QUERY_STRING=f"limit={number}")
    assert len(answers._refusals) == 3


def test_refusals_of_resources_that_differ_in_their_ids_are_kept_once():
    for number in range(1, 5):
        refuse(PATH_INFO=f"/api/v1/posts/{number}/comments")
    assert len(answers._refusals) == 1


def test_each_refusal_is_counted(monkeypatch):
    counted = []

    def record(environ, status, headers, began, **options):
        counted.append((environ["REQUEST_METHOD"], status))

    monkeypatch.setattr(answers.metrics, "record", record)
    monkeypatch.setattr(answers.uses, "count", lambda *given: counted.append(str(given[0])))
    for _ in range(2):
        refuse()
    assert counted == ["1", ("GET", 503)] * 2


class Connection:
    """Stands in a frame, as the server's end of a connection does."""


def test_refused_request_keeps_no_connection_open():
    def receive(environ: dict[str, Any]) -> "weakref.ref[Connection]":
        connection = Connection()
        try:
            try:
                raise ConnectionError
            except ConnectionError:
                raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, "Too long.") from None
        except DomainError as problem:
            answers.refuse(environ, problem)
        return weakref.ref(connection)

    gc.disable()
    try:
        environ = build_environ()
        assert receive(environ)() is None
    finally:
        gc.enable()
