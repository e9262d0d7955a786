"""The WSGI application, for any server that speaks WSGI. `manage.py serve` uses config.server.rsgi, without a proxy."""

import logging
import os
from collections.abc import Callable, Iterable
from http.client import responses
from io import BytesIO
from typing import Any, NamedTuple

from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest

from config.api.settings import settings
from config.api.versions.usage import uses
from config.fastpath.postgresql.base import database
from config.http.errors import DomainError, ErrorCode
from config.http.request_limits import REFUSED, screen, too_long

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

logger = logging.getLogger(__name__)

Environ = dict[str, Any]

_django: Any = get_wsgi_application()

from config.fastpath import handler  # noqa: E402 - it needs the apps


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers a request. It is the server's task, or that of a proxy in front, to bring the body in time and whole."""
    try:
        screen(environ)
        _receive_body(environ, settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)
    except DomainError as problem:
        refuse(environ, problem)
    given = answer(environ)
    uses.write_when_due()
    start_response(f"{given.status} {responses.get(given.status, '')}", given.headers)
    return [given.body]


def _receive_body(environ: Environ, limit: int) -> None:
    """Puts a chunked body, up to one byte over the limit, into memory: Django reads none without Content-Length."""
    if not environ.get("CONTENT_LENGTH") and environ.get("HTTP_TRANSFER_ENCODING"):
        body = environ["wsgi.input"].read(limit + 1)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)


def answer(environ: Environ) -> Answer:
    """Runs Django in this thread, whose database connection it uses.

    Args:
        environ: a WSGI environment that `screen` let pass.

    Returns:
        the whole answer; INTERNAL_ERROR for what Django lets escape.
    """
    try:
        return _run(environ)
    except Exception as exception:  # noqa: BLE001 - the last place where a fault can become an answer
        return failure(exception, environ)


def _run(environ: Environ) -> Answer:
    request = handler.plain(environ)
    if request is None:
        return _run_django(environ)
    # What Django does by signals at the beginning and the end of a request.
    database().close_if_unusable_or_obsolete()
    response = handler.respond(request)
    return Answer(response.status_code, list(response.headers.items()), response.content)


def _run_django(environ: Environ) -> Answer:
    started: list[Any] = []
    response = _django(environ, lambda status, headers, *rest: started.extend((status, headers)))
    try:
        body = b"".join(response)
    finally:
        # In this thread: the signal that a request ended concerns the connections of the thread that sends it.
        response.close()
    status, headers = started
    return Answer(int(status[:3]), headers, body)


def refuse(environ: Environ, problem: Exception) -> None:
    """Makes Django answer a request with the problem and look no further: by the way, and with the headers, of all."""
    for name in too_long(environ):
        # The answer depends on some of them, and they are refused because they take long to read.
        del environ[name]
    environ |= {REFUSED: problem, "CONTENT_TYPE": "", "CONTENT_LENGTH": "0", "wsgi.input": BytesIO()}


def failure(exception: BaseException, environ: Environ) -> Answer:
    """INTERNAL_ERROR, and a line in the log under the Request-Id of the answer."""
    from config.api.exceptions import plain_response
    from config.http.middleware import RequestIdMiddleware

    message = "Something failed on our side; the Request-Id finds it in the log."
    problem = DomainError(ErrorCode.INTERNAL_ERROR, message)
    request = HttpRequest()
    request.META = environ
    response = RequestIdMiddleware(lambda request: plain_response(problem, request))(request)
    logger.error("Request-Id %s", response["Request-Id"], exc_info=exception)
    return Answer(response.status_code, list(response.items()), response.content)
