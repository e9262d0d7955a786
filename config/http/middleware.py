"""Applies to every response, whichever view makes it."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from config.http.headers import set_default_headers, vary_on
from config.http.request_state import get_state
from config.http.url_map import find_view, get_allowed_methods, get_declaration

GetResponse = Callable[[HttpRequest], HttpResponse]

SECRET_PARAMETER = "api_key"
MAX_REQUEST_ID_LENGTH = 128
SANE_REQUEST_ID = re.compile(rf"[A-Za-z0-9._~-]{{1,{MAX_REQUEST_ID_LENGTH}}}")


class Middleware:
    """A middleware of one method: `__call__`."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response


class RequestMiddleware(Middleware):
    """Prepares every request before the other middlewares see it, and completes every response after them.

    * The response carries a `Request-Id`.
    * `post` is no `POST` (RFC 9110, section 9.1), which Django takes it for; so it is a method that nothing has.
    * `?api_key=` is taken out of the query: no log, link, page or redirect repeats it.
    * The response tells its length; 204 and 304, which have no content, must not (RFC 9110, section 8.6).
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        state = get_state(request.META)
        state.request_id = request_id = choose_request_id(request.META)
        request.method = request.META["REQUEST_METHOD"]
        query = request.META.get("QUERY_STRING", "")
        # Unencoded, or with some of it percent-encoded: nothing else decodes to it.
        if SECRET_PARAMETER in query or "%" in query:
            rest, secrets = split_query(query, SECRET_PARAMETER)
            if secrets:
                request.META["QUERY_STRING"] = rest
                state.secret_parameters = [unquote_plus(part.partition("=")[2]) for part in secrets]
        state.request = request
        try:
            response = self.get_response(request)
        finally:
            # It would be a cycle, which only the garbage collector frees.
            state.request = None
        response.headers["Request-Id"] = request_id
        if not response.streaming and response.status_code not in {204, 304}:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


def choose_request_id(environ: Mapping[str, Any]) -> str:
    """The client's own X-Request-Id when it is a sane one, otherwise a random one."""
    given: str = environ.get("HTTP_X_REQUEST_ID", "")
    return given if SANE_REQUEST_ID.fullmatch(given) else os.urandom(16).hex()


def split_query(query: str, name: str) -> tuple[str, Sequence[str]]:
    """A query without a parameter, and the parts of it that are the parameter, however they are encoded."""
    named: list[str] = []
    others: list[str] = []
    for part in filter(None, query.split("&")):
        (named if unquote_plus(part.partition("=")[0]) == name else others).append(part)
    return "&".join(others), named


class HostMiddleware(Middleware):
    """Refuses a Host that is not one of ALLOWED_HOSTS, for views that do not ask which it is, too.

    Views with `takes_any_host` are for probes, which come by address, or in HTTP/1.0 without a Host.
    """

    refuses = True

    def __call__(self, request: HttpRequest) -> HttpResponse:
        host = request.META.get("HTTP_HOST", request.META["SERVER_NAME"])
        if _is_allowed_host(host, tuple(settings.ALLOWED_HOSTS)):
            return self.get_response(request)
        # RFC 3986, section 3.2.3: an empty port is none. Django takes such a host for another one.
        name, colon, port = host.rpartition(":")
        if colon and not port and ":" not in name.rpartition("]")[2]:
            request.META["HTTP_HOST"] = name
        if not get_declaration(find_view(request.path_info), "takes_any_host", default=False):
            request.get_host()
        return self.get_response(request)


@lru_cache(maxsize=64)
def _is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether Django takes a request for this host."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        return bool(request.get_host())
    except SuspiciousOperation:
        return False


class CrossOriginMiddleware(CorsMiddleware):
    """django-cors-headers', but a preflight is an answer without a body that tells the methods of the address."""

    def __call__(self, request: HttpRequest) -> Any:
        if "HTTP_ORIGIN" not in request.META and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" not in request.META:
            # All that is left to do for most requests, in a tenth of the time.
            response: Any = self.get_response(request)
            vary_on(response, "origin")
            return response
        return super().__call__(request)

    def check_preflight(self, request: HttpRequest) -> HttpResponse | None:
        if super().check_preflight(request) is None:
            return None
        response = HttpResponse(status=204)
        del response["Content-Type"]
        if methods := get_allowed_methods(find_view(request.path_info)):
            response["Allow"] = ", ".join(methods)
        return response


# The browsable API, the admin and the documentation: scripts and styles from our own files, none inline.
_PAGE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}
# Data shows nothing, also where a browser is made to take it for a page.
_DATA = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


class ContentPolicyMiddleware(Middleware):
    """Gives an answer its policy, unless its view gave one of its own (accounts.pages)."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        set_default_headers(response, _PAGE if is_page else _DATA)
        return response


@lru_cache(maxsize=64)
def get_security_headers(is_secure: bool, content_type: str) -> Mapping[str, str]:
    """The headers that SecurityMiddleware, XFrameOptionsMiddleware and ContentPolicyMiddleware give any response.

    Args:
        is_secure: whether the request came by TLS.
        content_type: of the response.
    """
    request = HttpRequest()
    request._get_scheme = lambda: "https" if is_secure else "http"  # type: ignore[attr-defined]  # the stubs leave it out
    response = HttpResponse(content_type=content_type)
    for middleware in (SecurityMiddleware, XFrameOptionsMiddleware, ContentPolicyMiddleware):
        middleware(lambda _: response)(request)
    del response["Content-Type"]
    return dict(response.items())


class SecurityHeadersMiddleware(Middleware):
    """Those three middlewares, for programs: their headers depend on the media type alone, and are made once."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        headers = get_security_headers(request.is_secure(), response.headers.get("Content-Type", ""))
        set_default_headers(response, headers)
        return response
