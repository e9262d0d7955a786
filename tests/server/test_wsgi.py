"""The application as another server would call it."""

import json
from io import BytesIO
from typing import Any

import pytest

from config import wsgi

# The end of a request looks after the connections of its thread.
pytestmark = pytest.mark.django_db(transaction=True)


def call(**environ: Any) -> tuple[str, dict[str, str], Any]:
    started: list[Any] = []
    (body,) = wsgi.application(
        {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/health/live",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(),
            **environ,
        },
        lambda status, headers: started.extend((status, dict(headers))),
    )
    return started[0], started[1], json.loads(body)


@pytest.mark.parametrize("content_type", ["a/b; charset=hex", "a/b; charset=utf-7", ""])
def test_charset_is_kept_from_django(content_type: str) -> None:
    assert call(CONTENT_TYPE=content_type, QUERY_STRING="a=1")[0] == "200 OK"


def test_long_address_is_refused() -> None:
    status, headers, body = call(PATH_INFO="/" + "a" * 9000)
    assert status == "400 Bad Request"
    assert headers["Request-Id"]
    assert body["error"]["code"] == "VALIDATION_ERROR"


def test_long_body_is_refused_before_it_is_read() -> None:
    for path, limit in [("/orders", 16 * 1024), ("/posts/5", 256 * 1024), ("/oauth/token", 16 * 1024)]:
        for method in ["PUT", "DELETE"]:
            for chunked in [True, False]:
                most = limit if method == "PUT" else 16 * 1024
                stream = BytesIO(b" " * 2 * 1024 * 1024)
                length = {"HTTP_TRANSFER_ENCODING": "chunked"} if chunked else {"CONTENT_LENGTH": str(most + 1)}
                status, _, body = call(PATH_INFO=path, REQUEST_METHOD=method, **{"wsgi.input": stream}, **length)
                assert status.startswith("413 ")
                assert f"The body is longer than {most} bytes." in str(body)
                assert stream.tell() == (most + 1 if chunked else 0)


def test_chunked_body_is_read() -> None:
    chunked = {"HTTP_TRANSFER_ENCODING": "Chunked", "wsgi.input": BytesIO(b"{}")}
    status, _, body = call(PATH_INFO="/api/login", REQUEST_METHOD="POST", CONTENT_TYPE="application/json", **chunked)
    assert (status, {detail["field"] for detail in body["error"]["details"]}) == (
        "400 Bad Request",
        {"email", "password"},
    )


def test_what_django_lets_escape_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    status, headers, body = call(PATH_INFO="/nowhere", REQUEST_METHOD=None)
    assert status == "500 Internal Server Error"
    assert body["error"]["code"] == "INTERNAL_ERROR"
    assert headers["Request-Id"] in caplog.text
