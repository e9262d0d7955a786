"""A shorter way than Django's for the requests of programs.

Most of what stands around a view is there for pages: sessions, cookies, messages, files, forms, the browsable API. None
of it has a part in the answer to a request that brings neither cookie nor origin and gets JSON, so such a request goes
around it. View, conventions and headers are the same on both ways; the tests compare them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import LimitedStream, WSGIRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.module_loading import import_string

from config.api.settings import settings
from config.api.views import Conventions
from config.http import media_types
from config.http.content_policy import ContentPolicyMiddleware
from config.http.headers import Headers, give_missing, vary_on
from config.http.middleware import SECRET_PARAMETER
from config.http.request_limits import REFUSED

# The middlewares that would do nothing on the short way, and why.
LEFT_OUT = {
    "django.middleware.security.SecurityMiddleware": "its headers are the same for all answers, and asked once",
    "django.middleware.clickjacking.XFrameOptionsMiddleware": "so is its header",
    "config.http.content_policy.ContentPolicyMiddleware": "so is its header, for all answers of a media type",
    "config.http.middleware.ExactMethodMiddleware": "the method is as it was sent",
    "django.middleware.csrf.CsrfViewMiddleware": "nobody is signed in by a cookie",
    "config.api.browsable.middleware.BrowsableMiddleware": "the answer is for a program",
    "corsheaders.middleware.CorsMiddleware": "the request names no origin; Vary says here that there might be one",
    "whitenoise.middleware.WhiteNoiseMiddleware": "the address leads to a view",
    "django.contrib.sessions.middleware.SessionMiddleware": "there is no cookie",
    "config.http.middleware.HostMiddleware": "the host was looked at",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "there is no session",
    "django.contrib.messages.middleware.MessageMiddleware": "there is no session",
    "config.api.exceptions.DomainErrorMiddleware": "the view has a handler of its own, and nothing was refused before",
}
# What a request of a page of another site has, and one that was refused before Django saw it.
_FOR_THE_WHOLE_WAY = frozenset({"HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD", REFUSED})
# Queries without anything to decode, and without a secret that must be taken out first.
_PLAIN_QUERY = re.compile(rf"(?!.*{SECRET_PARAMETER})(?:[\w.~-]+=[\w.~-]*(?:&|\Z)){{0,50}}(?<!&)", re.ASCII)
_NO_QUERY = QueryDict()
_NUMBER = re.compile(r"(?<=/)([0-9]+)(?=/|\Z)")
# Takes the place of a number; no address that leads somewhere holds it.
_STAND_IN = "\0"


class PlainRequest(WSGIRequest):
    """Django's request, made of an environment whose path needs no decoding, together with where it leads.

    Args:
        environ: of which no copy is made.
        match: the view at the path.
        view_kwargs: what the view is told of the path.
    """

    def __init__(self: Any, environ: dict[str, Any], match: ResolverMatch, view_kwargs: Mapping[str, Any]) -> None:
        self.environ = self.META = environ
        self.path = self.path_info = environ["PATH_INFO"]
        self.method = environ["REQUEST_METHOD"]
        self.resolver_match = match
        self.view_kwargs = view_kwargs
        self._set_content_type_params(environ)
        self._read_started = False
        if _PLAIN_QUERY.fullmatch(query := environ.get("QUERY_STRING", "")):
            self.GET = query_of(query)

    @cached_property
    def _stream(self) -> LimitedStream:  # type: ignore[override]
        # Only where a body is read.
        return LimitedStream(self.environ["wsgi.input"], int(self.environ.get("CONTENT_LENGTH") or 0))


def plain(environ: dict[str, Any]) -> PlainRequest | None:
    """The request of a WSGI environment if it may go the short way; the environment is its from then on."""
    if environ.get("HTTP_COOKIE") or not _FOR_THE_WHOLE_WAY.isdisjoint(environ):
        return None
    if environ.get("SCRIPT_NAME") or settings.FORCE_SCRIPT_NAME:
        return None
    if media_types.choose(environ.get("HTTP_ACCEPT", "")).media_type != media_types.JSON:
        return None
    if not _is_served(environ.get("HTTP_HOST", environ["SERVER_NAME"]), tuple(settings.ALLOWED_HOSTS)):
        return None
    found = _view_at(environ.get("PATH_INFO", ""))
    return PlainRequest(environ, *found) if found else None


def query_of(plain: str) -> QueryDict:
    """What Django makes of a query, in a fraction of the time that its library takes to decode what is not encoded."""
    if not plain:
        return _NO_QUERY
    values: dict[str, list[str]] = {}
    for part in plain.split("&"):
        name, _, value = part.partition("=")
        values.setdefault(name, []).append(value)
    made = QueryDict.__new__(QueryDict)
    dict.update(made, values)
    made.encoding, made._mutable = "utf-8", False
    return made


def respond(request: PlainRequest) -> HttpResponse:
    """The answer to a plain request."""
    answer = _way()(request)
    give_missing(answer, _same_for_all(request.is_secure(), answer.headers.get("Content-Type", "")))
    vary_on(answer, "origin")
    return answer


@cache
def _way() -> Callable[[HttpRequest], HttpResponse]:
    way: Any = convert_exception_to_response(_ask_view)
    for name in reversed(settings.MIDDLEWARE):
        if name not in LEFT_OUT:
            way = import_string(name)(way)
    asked: Callable[[HttpRequest], HttpResponse] = way
    return asked


def _ask_view(request: Any) -> HttpResponse:
    answer: HttpResponse = request.resolver_match.func(request, **request.view_kwargs).render()
    return answer


@lru_cache(maxsize=64)
def _same_for_all(secure: bool, content_type: str) -> Headers:
    """The headers that the middlewares of security put on any answer of a media type."""
    request = HttpRequest()
    request._get_scheme = lambda: "https" if secure else "http"  # type: ignore[attr-defined]  # the stubs leave it out
    response = HttpResponse(content_type=content_type)
    for middleware in (SecurityMiddleware, XFrameOptionsMiddleware, ContentPolicyMiddleware):
        middleware(lambda _: response)(request)
    del response["Content-Type"]
    return Headers(response.headers)


@lru_cache(maxsize=64)
def _is_served(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether Django takes a request for this host."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        return bool(request.get_host())
    except SuspiciousOperation:
        return False


def _view_at(path: str) -> tuple[ResolverMatch, Mapping[str, Any]] | None:
    """Where an address leads, if to a view of ours, and what the view is told of the address.

    Addresses that differ in nothing but numbers lead to the same view, so that each form of them is looked up once.
    """
    if _STAND_IN in path or not path.isascii():
        return None
    # In turn what stands around the numbers, and the numbers.
    parts = _NUMBER.split(path)
    match, numbers = _match(*parts[::2])
    if match is None:
        return None
    return match, match.kwargs | {name: parts[place] for name, place in numbers}


@lru_cache(maxsize=512)
def _match(start: str, *others: str) -> tuple[ResolverMatch | None, Sequence[tuple[str, int]]]:
    """What Django finds at the addresses of a form; and the names of the numbers in them, each with its place."""
    path = start + "".join(f"{_STAND_IN}{place}{text}" for place, text in enumerate(others))
    try:
        match = resolve(path)
    except Resolver404:
        return None, ()
    if not issubclass(getattr(match.func, "cls", object), Conventions):
        return None, ()
    return match, [
        (name, 2 * int(value[1:]) + 1) for name, value in match.kwargs.items() if value.startswith(_STAND_IN)
    ]
