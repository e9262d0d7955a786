"""The answer to a WSGI environment, whichever server brings it: by the fast path where that is on and may be taken."""

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing
from functools import cache, lru_cache
from io import BytesIO
from typing import Any, NamedTuple

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse

from config.api.exceptions import plain_response
from config.api.handlers import build_api_stack
from config.api.streams import StreamResponse
from config.api.versions.table import Version
from config.api.versions.usage import uses
from config.api.versions.versioning import (
    VERSION_PARAMETER,
    choose_media_type,
    find_response_version,
    get_prefix,
    is_versioned,
)
from config.http.errors import DomainError, ErrorCode
from config.http.lanes import Lane
from config.http.media_types import CSV, HTML, MEDIA_TYPES, NDJSON
from config.http.middleware import RequestMiddleware, choose_request_id, split_query
from config.http.request_limits import MAX_SHORT_BODY, too_long
from config.http.request_state import get_state
from config.http.url_map import find_view, get_declaration
from config.server import metrics
from config.server.requests import Environ

# Before the fork, so that processes share it.
if settings.FAST_PATH:
    from config.fastpath.postgresql.base import get_connection
    from config.fastpath.views import build_request, get_response

logger = logging.getLogger(__name__)

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
# A page takes long to render, and a whole list is long.
_SLOW = frozenset({HTML, NDJSON, CSV})


class Answer(NamedTuple):
    """A whole response as servers take it."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def choose_lane(environ: Environ) -> Lane:
    """The lane that the view at the address declares for the method. What declares none is no short JSON request."""
    if get_state(environ).refused:
        return Lane.FAST
    if int(environ.get("CONTENT_LENGTH") or 0) > MAX_SHORT_BODY:
        # It takes longer to parse.
        return Lane.SLOW
    # It may have a thousand lines.
    if environ.get("CONTENT_TYPE", "").lower() == NDJSON:
        return Lane.SLOW
    # A password comes with every such request.
    if environ.get("HTTP_AUTHORIZATION", "")[:6].lower() == "basic ":
        return Lane.SLOW
    path, method, accept = environ["PATH_INFO"], environ["REQUEST_METHOD"], environ.get("HTTP_ACCEPT", "")
    # Addresses that differ in their digits alone lead to the same view.
    return _find_lane(path.encode("latin-1").translate(_ZEROS).decode("latin-1"), method, accept)


# Clients send the same few, and may make up others.
@lru_cache(maxsize=1024)
def _find_lane(path: str, method: str, accept: str) -> Lane:
    if choose_media_type(accept, MEDIA_TYPES).media_type in _SLOW:
        return Lane.SLOW
    lanes: Mapping[str, Lane] | None = get_declaration(find_view(path), "lanes")
    return Lane.SLOW if lanes is None else lanes.get(method, Lane.FAST)


def answer(django: Any, environ: Environ) -> Answer:
    """`begin_answer`, and the whole response, also of a list that might be streamed."""
    response, stream = begin_answer(django, environ)
    if stream is None:
        return response
    with closing(stream):
        try:
            return response._replace(body=b"".join(stream))
        except Exception as exception:  # noqa: BLE001 - as in `begin_answer`
            return failure(exception, environ)


def begin_answer(django: Any, environ: Environ) -> tuple[Answer, StreamResponse | None]:
    """Runs Django in this thread, whose database connection it uses.

    Args:
        django: Django's WSGI application.
        environ: a WSGI environment that `screen` let pass.

    Returns:
        the whole response and None, INTERNAL_ERROR for what Django lets escape; or the response without its body, and
        what gives that piece by piece, to be closed whatever becomes of it.
    """
    try:
        response = _run_fast_path(environ) if settings.FAST_PATH else None
        return _run_django(django, environ) if response is None else (response, None)
    except Exception as exception:  # noqa: BLE001 - the last place where a fault can become a response
        return failure(exception, environ), None


def _run_fast_path(environ: Environ) -> Answer | None:
    """The response of the fast path; None for a request that must take the full stack."""
    request = build_request(environ)
    if request is None:
        return None
    # Django does this by signals at the beginning of a request.
    get_connection("default").close_if_unusable_or_obsolete()
    response = get_response(request)
    return Answer(response.status_code, list(response.headers.items()), response.content)


def _run_django(django: Any, environ: Environ) -> tuple[Answer, StreamResponse | None]:
    started: list[Any] = []
    response = django(environ, lambda status, headers, *rest: started.extend((status, headers)))
    status, headers = started
    head = Answer(int(status[:3]), headers, b"")
    if isinstance(response, StreamResponse):
        return head, response
    # In this thread: the signal that a request ended concerns the connections of the thread that sends it.
    with closing(response):
        return head._replace(body=b"".join(response)), None


def refuse(environ: Environ, problem: Exception) -> None:
    """Makes Django answer a request with the problem, by the stack of all requests, and look no further."""
    for name in too_long(environ):
        # The response depends on some of them, and they are refused because they take long to read.
        del environ[name]
    if isinstance(problem, DomainError):
        # Its frames hold the server's end of the connection, and the environment holds it: a cycle that keeps open,
        # until the garbage collector comes, a connection that is to be closed.
        problem.__traceback__ = problem.__context__ = None
    get_state(environ).refused = problem
    environ |= {"CONTENT_TYPE": "", "CONTENT_LENGTH": "0", "wsgi.input": BytesIO()}


# What the response to a request that is not run depends on, apart from its address.
_DECISIVE = (
    *("REQUEST_METHOD", "wsgi.url_scheme", "SERVER_NAME", "SERVER_PORT", "HTTP_HOST", "HTTP_X_FORWARDED_PROTO"),
    *("HTTP_ACCEPT", "HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD", "HTTP_ACCESS_CONTROL_REQUEST_HEADERS"),
)
MAX_REFUSALS = 256
_refusals: dict[Hashable, tuple[Answer, Version | None]] = {}


def refuse_at_once(environ: Environ, problem: DomainError) -> Answer:
    """The response to a request that is not run: made without a look at the database, and counted against no quota.

    Under overload, there are many for each answer. So the stack makes one for all requests that differ in nothing that
    it depends on: that costs a third.
    """
    began = time.perf_counter()
    path = environ["PATH_INFO"]
    # A preflight, which the stack answers by itself, tells the methods of the address.
    is_alike = is_versioned(path) and environ["REQUEST_METHOD"] != "OPTIONS"
    address = get_prefix(path) if is_alike else path
    query = "&".join(split_query(environ.get("QUERY_STRING", ""), VERSION_PARAMETER)[1])
    given = {name: environ[name] for name in _DECISIVE if name in environ}
    key = (problem.code, problem.message, address, query, *given.items())
    found = _refusals.get(key)
    if found is None:
        request = WSGIRequest({**given, "PATH_INFO": address, "QUERY_STRING": query, "wsgi.input": BytesIO()})
        made = get_state(request.META)
        # As if it were counted already.
        made.refused, made.quota_fields = problem, {}
        response = _get_short_stack()(request)
        version = find_response_version(request) if is_versioned(path) else None
        found = Answer(response.status_code, [*response.items()], response.content), version
        if len(_refusals) >= MAX_REFUSALS:
            _refusals.clear()
        # A fault of one request would be the answer to all that are like it.
        if response.status_code != 500:
            _refusals[key] = found
    elif found[1]:
        uses.count(found[1], None, found[0].status)
    refusal = found[0]
    headers = {**dict(refusal.headers), "Request-Id": choose_request_id(environ)}
    metrics.record(environ, refusal.status, headers, began)
    return refusal._replace(headers=[*headers.items()])


@cache
def _get_short_stack() -> Callable[[HttpRequest], HttpResponse]:
    def refuse(request: HttpRequest) -> HttpResponse:
        problem: Any = get_state(request.META).refused
        return plain_response(problem, request)

    return build_api_stack(refuse, without="config.server.metrics.MetricsMiddleware")


def failure(exception: BaseException, environ: Environ) -> Answer:
    """INTERNAL_ERROR, and a line in the log under the Request-Id of the response."""
    problem = DomainError(ErrorCode.INTERNAL_ERROR)
    request = HttpRequest()
    request.META = environ
    response = RequestMiddleware(lambda request: plain_response(problem, request))(request)
    logger.error("Request-Id %s", response["Request-Id"], exc_info=exception)
    metrics.record(environ, response.status_code, response.headers, time.perf_counter())
    return Answer(response.status_code, list(response.items()), response.content)
