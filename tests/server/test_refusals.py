"""Refusals of requests that are not run."""

import gc
import weakref
from io import BytesIO
from typing import Any

import pytest

from config.http.errors import DomainError, ErrorCode
from config.server import answers


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


def test_each_refusal_has_a_request_id_of_its_own():
    assert dict(refuse(HTTP_X_REQUEST_ID="own").headers)["Request-Id"] == "own"
    assert len({dict(refuse().headers)["Request-Id"] for _ in range(3)}) == 3


def test_refusals_for_different_reasons_are_different():
    excess = DomainError(ErrorCode.RATE_LIMITED, "Too many.", headers={"Retry-After": "1"})
    limited = answers.refuse_at_once(build_environ(), excess)
    assert [refuse().status, limited.status, refuse("Else.").status] == [503, 429, 503]
    assert refuse("Else.").body != refuse().body


@pytest.mark.parametrize("name", ["api_key", "api%5Fkey"])
def test_secret_of_a_refused_request_is_not_shown(name):
    answer = refuse(QUERY_STRING=f"{name}=secret")
    assert "secret" not in str(answer)


def test_each_refusal_is_counted(monkeypatch):
    counted = []

    def record(environ, status, headers, began, **options):
        counted.append((environ["REQUEST_METHOD"], status))

    monkeypatch.setattr("config.server.metrics.record", record)
    for _ in range(2):
        refuse()
    assert counted == [("GET", 503)] * 2


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
