"""The answer to a WSGI environment, whichever server brings it: by the fast path where that is on and may be taken."""

import logging
from io import BytesIO
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest

from config.api.exceptions import plain_response
from config.http.errors import DomainError, ErrorCode
from config.http.middleware import RequestIdMiddleware
from config.http.request_limits import REFUSED, too_long

logger = logging.getLogger(__name__)

Environ = dict[str, Any]


class Answer(NamedTuple):
    """A whole response as servers take it."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def answer(django: Any, environ: Environ) -> Answer:
    """Runs Django in this thread, whose database connection it uses.

    Args:
        django: Django's WSGI application.
        environ: a WSGI environment that `screen` let pass.

    Returns:
        the whole response; INTERNAL_ERROR for what Django lets escape.
    """
    try:
        return (settings.FAST_PATH and _run_fast_path(environ)) or _run_django(django, environ)
    except Exception as exception:  # noqa: BLE001 - the last place where a fault can become a response
        return failure(exception, environ)


def _run_fast_path(environ: Environ) -> Answer | None:
    """The response of the fast path; None for a request that must take the full stack."""
    from config.fastpath import handler
    from config.fastpath.postgresql.base import get_connection

    request = handler.build_request(environ)
    if request is None:
        return None
    # What Django does by signals at the beginning and the end of a request.
    get_connection("default").close_if_unusable_or_obsolete()
    response = handler.get_response(request)
    return Answer(response.status_code, list(response.headers.items()), response.content)


def _run_django(django: Any, environ: Environ) -> Answer:
    started: list[Any] = []
    response = django(environ, lambda status, headers, *rest: started.extend((status, headers)))
    try:
        body = b"".join(response)
    finally:
        # In this thread: the signal that a request ended concerns the connections of the thread that sends it.
        response.close()
    status, headers = started
    return Answer(int(status[:3]), headers, body)


def refuse(environ: Environ, problem: Exception) -> None:
    """Makes Django answer a request with the problem, by the stack of all requests, and look no further."""
    for name in too_long(environ):
        # The response depends on some of them, and they are refused because they take long to read.
        del environ[name]
    environ |= {REFUSED: problem, "CONTENT_TYPE": "", "CONTENT_LENGTH": "0", "wsgi.input": BytesIO()}


def failure(exception: BaseException, environ: Environ) -> Answer:
    """INTERNAL_ERROR, and a line in the log under the Request-Id of the response."""
    message = "Something failed on our side; the Request-Id finds it in the log."
    problem = DomainError(ErrorCode.INTERNAL_ERROR, message)
    request = HttpRequest()
    request.META = environ
    response = RequestIdMiddleware(lambda request: plain_response(problem, request))(request)
    logger.error("Request-Id %s", response["Request-Id"], exc_info=exception)
    return Answer(response.status_code, list(response.items()), response.content)
