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
