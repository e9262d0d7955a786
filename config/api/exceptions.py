"""The one exception handler, and the same answers for what happens outside DRF's views."""

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, DisallowedHost, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.representation import envelope
from config.api.representation.renderers import ProblemRenderer, render_as_data
from config.api.versions import versioning
from config.api.versions.versioning import is_oauth_endpoint, is_versioned, prefers_problem_json
from config.http.errors import Detail, DomainError, ErrorCode, invalid, not_found
from config.http.json import to_json
from config.http.media_types import PROBLEM_JSON
from config.http.middleware import Middleware
from config.http.request_limits import body_too_long
from config.http.request_state import get_state
from config.http.url_map import find_route
from config.postgresql.transactions import is_unavailable

logger = logging.getLogger(__name__)

BEARER = 'Bearer realm="users"'
CHALLENGE = f'{BEARER}, Basic realm="users", charset="UTF-8"'
# Of exceptions of DRF, and of the packages that raise its own: the first code of each status of a client's fault.
_CODES = {code.status: code for code in reversed(ErrorCode) if code.status < 500}


def handle(exception: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's hook: every exception of a view becomes an error body."""
    problem = get_problem(exception)
    request = context["request"]
    _log(problem, request, exception)
    if prefers_problem_json(request.META.get("HTTP_ACCEPT", "")):
        body: object = envelope.problem_details(problem)
        request.accepted_renderer, request.accepted_media_type = ProblemRenderer(), PROBLEM_JSON
    else:
        body = envelope.error(problem)
        render_as_data(request)
    return Response(body, problem.status, headers=_get_headers(problem))


def _log(problem: DomainError, request: Request, exception: BaseException | None) -> None:
    """Logs a bug with its traceback, and an unavailable database in one line, since it fails every request."""
    # Not the address, which may be that of a mailed link.
    if problem.code == ErrorCode.INTERNAL_ERROR:
        logger.error("%s in %s %s", problem.code, request.method, find_route(request.path_info), exc_info=exception)
    elif problem.code == ErrorCode.SERVICE_UNAVAILABLE:
        logger.error("%s in %s %s: %s", problem.code, request.method, find_route(request.path_info), exception)


def _get_headers(problem: DomainError) -> dict[str, str]:
    headers = {"Cache-Control": "no-store", "Link": f'<{problem.code.help}>; rel="help"', **problem.headers}
    if problem.status == 401:
        headers.setdefault("WWW-Authenticate", CHALLENGE)
    if problem.status == 503:
        headers.setdefault("Retry-After", "1")
    return headers


def get_problem(exception: BaseException | None) -> DomainError:
    """The response to an exception."""
    match exception:
        case DomainError():
            return exception
        case drf.ValidationError():
            return invalid(*_flatten(exception.detail))
        case Http404() | drf.NotFound():
            return not_found()
        case PermissionDenied():
            return DomainError(ErrorCode.FORBIDDEN)
        case RequestDataTooBig():
            return body_too_long(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)
        case DisallowedHost():
            return invalid(Detail("Host", "The service does not accept this host name."))
        case SuspiciousOperation() | BadRequest() | MultiPartParserError():
            return invalid(Detail("", "The request has too many parameters or an unreadable body."))
        case drf.APIException() if exception.status_code in _CODES:
            return DomainError(_CODES[exception.status_code], str(exception.detail))
        case _ if is_unavailable(exception):
            return DomainError(ErrorCode.SERVICE_UNAVAILABLE)
    return DomainError(ErrorCode.INTERNAL_ERROR)


def _flatten(detail: object, path: str = "") -> Iterator[Detail]:
    """DRF's nested details as dotted fields. Errors of `many=True` come as a dict keyed by index, or as a list."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _flatten(inner, ".".join(filter(None, (path, own))))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list)
            yield from _flatten(inner, ".".join(filter(None, (path, str(index)))) if nested else path)
    else:
        yield Detail(path, str(detail))


def plain_response(problem: DomainError, request: HttpRequest) -> HttpResponse:
    """An error body where there is no DRF view: unknown paths, CSRF, middleware, the admin; of OAuth, its own."""
    if is_oauth_endpoint(request.path_info):
        body, content_type = envelope.oauth_error(problem), "application/json"
    elif prefers_problem_json(request.META.get("HTTP_ACCEPT", "")):
        body, content_type = envelope.problem_details(problem), PROBLEM_JSON
    else:
        body, content_type = envelope.error(problem), "application/json"
    return HttpResponse(to_json(body), status=problem.status, content_type=content_type, headers=_get_headers(problem))


def answer_to(request: HttpRequest, exception: BaseException | None) -> HttpResponse:
    """The response to an exception outside of DRF views. A bug is logged. It is Django's `handler400` and `handler403`.

    Args:
        request: that was refused before a view saw it, or by a view of Django's.
        exception: a SuspiciousOperation or the like, which decides the code of the error.
    """
    problem = get_problem(exception)
    _log(problem, request, exception)
    return plain_response(problem, request)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler404`: NOT_FOUND, or what is wrong with the version that the request asks for.

    Args:
        request: whose address leads to no view.
        exception: Django's Http404, whose text would tell of the URL map and is not shown.
    """
    problem = DomainError(ErrorCode.NOT_FOUND, "There is no endpoint at this URL.")
    if is_versioned(request.path_info):
        try:
            versioning.get_version(request)
        except DomainError as other:
            problem = other
    return plain_response(problem, request)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django calls this while it handles the exception, which distinguishes an unavailable database from a bug."""
    return answer_to(request, sys.exc_info()[1])


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return plain_response(DomainError(ErrorCode.FORBIDDEN, f"CSRF check failed: {reason}"), request)


class DomainErrorMiddleware(Middleware):
    """Answers a DomainError of a plain Django view, such as the admin's sign-in, as the API answers one of its own.

    And a request that was refused before Django saw it, without a look at it.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        refused = get_state(request.META).refused
        return self.get_response(request) if refused is None else answer_to(request, refused)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer_to(request, exception) if isinstance(exception, DomainError) else None
