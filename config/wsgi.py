"""The WSGI application, for any server that speaks WSGI. `manage.py serve` runs config.asgi, without a proxy."""

import os
from collections.abc import Callable, Iterable
from http.client import responses
from io import BytesIO
from typing import Any

from django import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
setup(set_prefix=False)

from config.api.handlers import Handler  # noqa: E402 - they need the apps
from config.api.requests import find_max_body  # noqa: E402
from config.api.versions.usage import uses  # noqa: E402
from config.http.errors import DomainError  # noqa: E402
from config.http.request_limits import body_too_long, screen  # noqa: E402
from config.server.answers import Streamed, begin_answer, refuse  # noqa: E402
from config.server.environ import Environ  # noqa: E402

_django: Any = Handler()


def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers a request. It is the server's task, or that of a proxy in front, to bring the body in time and whole."""
    try:
        screen(environ)
        method, path, media_type = environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), environ["CONTENT_TYPE"]
        _receive_body(environ, find_max_body(method, path, media_type))
    except DomainError as problem:
        refuse(environ, problem)
    begun = begin_answer(_django, environ)
    if isinstance(begun, Streamed):
        status, headers, _ = begun.head
        body: Iterable[bytes] = begun.body
    else:
        # Not in the middle of a stream, which holds a transaction of this thread.
        uses.write_when_due()
        status, headers, whole = begun
        body = [whole]
    start_response(f"{status} {responses.get(status, '')}", headers)
    return body


def _receive_body(environ: Environ, limit: int) -> None:
    """Puts a chunked body into memory, since Django reads none without Content-Length.

    Raises:
        DomainError: PAYLOAD_TOO_LARGE for a body over the limit, of which no more than the limit is read.
    """
    length = environ.get("CONTENT_LENGTH") or "0"
    if length == "0" and environ.get("HTTP_TRANSFER_ENCODING"):
        body = environ["wsgi.input"].read(limit + 1)
        length = environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)
    # What is no number is the server's to refuse, and no body to Django. Python converts no very long one.
    if length.isdecimal() and int(length[:19]) > limit:
        raise body_too_long(limit)
