"""What holds for every answer, whichever view gives it."""

import os
import re
from collections.abc import Callable
from urllib.parse import unquote_plus
from wsgiref.types import WSGIEnvironment

from corsheaders.middleware import CorsMiddleware
from django.http import HttpRequest, HttpResponse

from config.http.headers import set_default_headers
from config.http.request_state import get_state
from config.http.url_map import find_view, get_allowed_methods, get_declaration

GetResponse = Callable[[HttpRequest], HttpResponse]

MAX_REQUEST_ID_LENGTH = 128
SANE_REQUEST_ID = re.compile(rf"[A-Za-z0-9._~-]{{1,{MAX_REQUEST_ID_LENGTH}}}")


def choose_request_id(environ: WSGIEnvironment) -> str:
    """What a request is called: by its client, or else by a new random name."""
    given = environ.get("HTTP_X_REQUEST_ID", "")
    return given if given and SANE_REQUEST_ID.fullmatch(given) else os.urandom(16).hex()


class RequestIdMiddleware:
    """Every answer carries a `Request-Id`: the client's own `X-Request-Id` when it is a sane one.

    It is in the log lines that are written meanwhile, too.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        state = get_state(request.META)
        state.request_id = request_id = choose_request_id(request.META)
        state.request = request
        try:
            response = self.get_response(request)
        finally:
            # It would be a cycle, which only the garbage collector frees.
            state.request = None
        response.headers["Request-Id"] = request_id
        return response


class ExactMethodMiddleware:
    """`post` is no `POST` (RFC 9110, section 9.1), which Django takes it for; so it is a method that nothing has."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.method = request.META["REQUEST_METHOD"]
        return self.get_response(request)


class HostMiddleware:
    """Refuses a Host that is not one of ALLOWED_HOSTS, for views that do not ask which it is, too.

    Views with `takes_any_host` are for probes, which come by address, or in HTTP/1.0 without a Host.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # RFC 3986, section 3.2.3: an empty port is none. Django takes such a host for another one.
        host, colon, port = request.META.get("HTTP_HOST", "").rpartition(":")
        if colon and not port and ":" not in host.rpartition("]")[2]:
            request.META["HTTP_HOST"] = host
        if not get_declaration(find_view(request.path_info), "takes_any_host", default=False):
            request.get_host()
        return self.get_response(request)


class ContentLengthMiddleware:
    """Tells the length of an answer; of 204 and 304, which have no content, it must not (RFC 9110, section 8.6)."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.streaming and response.status_code not in {204, 304}:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


class CrossOriginMiddleware(CorsMiddleware):
    """django-cors-headers', but a preflight is an answer without a body that tells the methods of the address."""

    def check_preflight(self, request: HttpRequest) -> HttpResponse | None:
        if super().check_preflight(request) is None:
            return None
        response = HttpResponse(status=204)
        del response["Content-Type"]
        methods = get_allowed_methods(find_view(request.path_info))
        if methods:
            response["Allow"] = ", ".join(methods)
        return response


SECRET_PARAMETER = "api_key"


class SecretParameterMiddleware:
    """Takes `?api_key=` out of the query before anything can see it: no log, link, page or redirect repeats it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        # As it stands, or with some of it encoded: nothing else is decoded to it.
        if SECRET_PARAMETER in query or "%" in query:
            self._take_out(request, query)
        return self.get_response(request)

    def _take_out(self, request: HttpRequest, query: str) -> None:
        rest, secrets = [], []
        for part in filter(None, query.split("&")):
            name, _, value = part.partition("=")
            if unquote_plus(name) == SECRET_PARAMETER:
                secrets.append(unquote_plus(value))
            else:
                rest.append(part)
        if secrets:
            request.META["QUERY_STRING"] = "&".join(rest)
            get_state(request.META).secret_parameters = secrets


# The browsable API, the admin and the documentation: scripts and styles from our own files, none inline.
_PAGE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}
# Data shows nothing, also where a browser is made to take it for a page.
_DATA = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


class ContentPolicyMiddleware:
    """Gives an answer its policy, unless its view gave one of its own (accounts.pages)."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        set_default_headers(response, _PAGE if is_page else _DATA)
        return response
