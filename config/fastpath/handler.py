"""The way of a program's request: around the middlewares that are there for pages.

Replaces: `WSGIHandler`, the URL resolver and the middleware stack. Buys: a third of a read. Sessions, cookies,
messages, files, forms and the browsable API have no part in the response to a request that brings neither cookie nor
origin and gets JSON. Views and headers are the same as on the full stack, which tests/system/differential compares.

The contract of Django's middlewares holds: one that is not in the tables below sends every request through the full
stack, as do receivers of request signals, ATOMIC_REQUESTS and other database routers (config.fastpath.checks says so).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any
from wsgiref.types import WSGIEnvironment

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed, SuspiciousOperation
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_finished, request_started, setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.module_loading import import_string

from config.api.versions.versioning import choose_media_type
from config.api.views import ConventionsMixin
from config.fastpath.http import FastHeaders, FastRequest, set_default_headers, vary_on
from config.fastpath.views import accelerate
from config.http.media_types import JSON, MEDIA_TYPES
from config.http.middleware import ContentPolicyMiddleware, GetResponse
from config.http.request_state import get_state
from config.http.url_map import View

_CORS_MIDDLEWARE = "config.http.middleware.CrossOriginMiddleware"
# The middlewares that would do nothing on the fast path, and why.
SKIPPED_MIDDLEWARE = {
    "django.middleware.security.SecurityMiddleware": "its headers are the same for all responses, and made once",
    "django.middleware.clickjacking.XFrameOptionsMiddleware": "so is its header",
    "config.http.middleware.ContentPolicyMiddleware": "so is its header, for all responses of a media type",
    "config.http.middleware.ExactMethodMiddleware": "the method is as it was sent",
    "django.middleware.csrf.CsrfViewMiddleware": "no cookie authenticates a user",
    "config.api.browsable.middleware.BrowsableMiddleware": "the response is for a program",
    _CORS_MIDDLEWARE: "the request names no origin; Vary says that it might",
    "config.site.static_files.StaticFilesMiddleware": "the address leads to a view",
    "django.contrib.sessions.middleware.SessionMiddleware": "there is no cookie",
    "config.http.middleware.HostMiddleware": "the host was checked",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "there is no session",
    "django.contrib.messages.middleware.MessageMiddleware": "there is no session",
    "config.api.exceptions.DomainErrorMiddleware": "the view has an exception handler, and nothing was refused before",
}
# The middlewares that run on the fast path, too. None has a `process_…` hook.
KEPT_MIDDLEWARE = frozenset(
    {
        "config.server.metrics.MetricsMiddleware",
        "config.http.middleware.RequestIdMiddleware",
        "config.http.middleware.ContentLengthMiddleware",
        "config.http.middleware.SecretParameterMiddleware",
        "config.api.versions.versioning.VersionMiddleware",
        "config.api.limits.quotas.QuotaMiddleware",
        "config.api.reading.ReadPositionMiddleware",
    }
)
# Receivers of request signals that Django itself connects: what they do is done here, or has no part in it.
_KNOWN_RECEIVERS = frozenset(
    {
        "django.core.cache.close_caches",
        "django.core.handlers.base.reset_urlconf",
        "django.db.close_old_connections",
        "django.db.reset_queries",
    }
)
# Compiled queries do what it does.
_KNOWN_ROUTER = "config.postgresql.replicas.ReplicaRouter"
# What a request of a page of another site has, or a cookie; and one below a prefix of the server.
_FULL_STACK_VARIABLES = ("HTTP_COOKIE", "HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD", "SCRIPT_NAME")
_NUMBER = re.compile(r"(?<=/)([0-9]+)(?=/|\Z)")
# Takes the place of a number; no address that leads somewhere holds it.
_PLACEHOLDER = "\0"


def find_obstacles() -> list[str]:
    """What sends every request through the full stack, in words; nothing where the fast path is open."""
    return [*_find_configured_obstacles(), *_find_receivers()]


def _find_configured_obstacles() -> list[str]:
    found = [
        f"the middleware {name}"
        for name in settings.MIDDLEWARE
        if name not in KEPT_MIDDLEWARE and name not in SKIPPED_MIDDLEWARE
    ]
    found += [
        f"ATOMIC_REQUESTS of {alias}" for alias, each in settings.DATABASES.items() if each.get("ATOMIC_REQUESTS")
    ]
    if any(name != _KNOWN_ROUTER for name in settings.DATABASE_ROUTERS):
        found.append("DATABASE_ROUTERS")
    if settings.FORCE_SCRIPT_NAME:
        found.append("FORCE_SCRIPT_NAME")
    return found


def _find_receivers() -> list[str]:
    found = []
    for name, signal in (("request_started", request_started), ("request_finished", request_finished)):
        for _, connected, *_ in signal.receivers:
            function = connected() if hasattr(connected, "__callback__") else connected
            label = getattr(function, "__name__", repr(function))
            if function is not None and f"{getattr(function, '__module__', '')}.{label}" not in _KNOWN_RECEIVERS:
                found.append(f"the receiver {label} of {name}")
    return found


class _Gate:
    """Whether the fast path is open, found out anew when receivers of request signals change."""

    started: list[object]
    finished: list[object]
    is_open = False

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.started = self.finished = [None]

    def look(self) -> bool:
        started, finished = request_started.receivers, request_finished.receivers
        if self.started != started or self.finished != finished:
            self.started, self.finished = [*started], [*finished]
            self.is_open = not find_obstacles()
        return self.is_open


_gate = _Gate()


def build_request(environ: WSGIEnvironment) -> FastRequest | None:
    """The request of a WSGI environment if it may take the fast path; the environment belongs to it from then on."""
    if any(environ.get(name) for name in _FULL_STACK_VARIABLES) or get_state(environ).refused:
        return None
    if choose_media_type(environ.get("HTTP_ACCEPT", ""), MEDIA_TYPES).media_type != JSON:
        return None
    if not _is_allowed_host(environ.get("HTTP_HOST", environ["SERVER_NAME"]), tuple(settings.ALLOWED_HOSTS)):
        return None
    if not _gate.look():
        return None
    view = _resolve(environ.get("PATH_INFO", ""))
    return FastRequest(environ, *view) if view else None


def get_response(request: FastRequest) -> HttpResponse:
    """The response to a request of the fast path."""
    response = _get_stack()(request)
    content_type = response.headers.get("Content-Type", "")
    set_default_headers(response, _get_security_headers(request.is_secure(), content_type))
    return response


@cache
def _get_stack() -> GetResponse:
    """The view within the middlewares that have a part in it."""
    stack: Any = convert_exception_to_response(_call_view)
    for name in reversed(settings.MIDDLEWARE):
        if name == _CORS_MIDDLEWARE:
            stack = _vary_on_origin(stack)
        if name in KEPT_MIDDLEWARE:
            try:
                stack = import_string(name)(stack)
            except MiddlewareNotUsed:
                continue
    return stack


def _vary_on_origin(get_response: GetResponse) -> GetResponse:
    """What the middleware of CORS does for a request that names no origin."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        vary_on(response, "origin")
        return response

    return respond


def _call_view(request: Any) -> HttpResponse:
    response: HttpResponse = request.view(request, **request.view_kwargs).render()
    return response


@lru_cache(maxsize=64)
def _get_security_headers(secure: bool, content_type: str) -> FastHeaders:
    """The headers that the middlewares of security put on any response of a media type."""
    request = HttpRequest()
    request._get_scheme = lambda: "https" if secure else "http"  # type: ignore[attr-defined]  # the stubs leave it out
    response = HttpResponse(content_type=content_type)
    for middleware in (SecurityMiddleware, XFrameOptionsMiddleware, ContentPolicyMiddleware):
        middleware(lambda _: response)(request)
    del response["Content-Type"]
    return FastHeaders(response.headers)


@lru_cache(maxsize=64)
def _is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether Django takes a request for this host."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        return bool(request.get_host())
    except SuspiciousOperation:
        return False


def _resolve(path: str) -> tuple[ResolverMatch, View, Mapping[str, str]] | None:
    """The view at a path, if it is one of ours, and its keyword arguments.

    Paths that differ in nothing but numbers lead to the same view, so that each form of path is resolved once.
    """
    if _PLACEHOLDER in path or not path.isascii():
        return None
    # In turn what stands around the numbers, and the numbers.
    parts = _NUMBER.split(path)
    match, view, numbers = _resolve_form(*parts[::2])
    if match is None:
        return None
    return match, view, match.kwargs | {name: parts[index] for name, index in numbers}


@lru_cache(maxsize=512)
def _resolve_form(start: str, *others: str) -> tuple[ResolverMatch | None, Any, Sequence[tuple[str, int]]]:
    """The view at the paths of a form; and the names of the numbers in them, each with its index."""
    path = start + "".join(f"{_PLACEHOLDER}{index}{text}" for index, text in enumerate(others))
    try:
        match = resolve(path)
    except Resolver404:
        return None, None, ()
    if not issubclass(getattr(match.func, "cls", object), ConventionsMixin):
        return None, None, ()
    numbers = [(name, 2 * int(value[1:]) + 1) for name, value in match.kwargs.items() if value.startswith(_PLACEHOLDER)]
    return match, accelerate(match.func), numbers


@receiver(setting_changed)
def _forget_settings(**options: object) -> None:
    """Settings change in tests alone, which send this signal: at a request nobody looks whether they did."""
    _gate.forget()
    for cached in (_get_stack, _resolve_form, _get_security_headers):
        cached.cache_clear()
