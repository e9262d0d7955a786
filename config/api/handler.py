"""Django's handler, with a shorter way for the requests of programs.

Most of what stands around a view is there for pages: sessions, cookies, messages, files, forms, the browsable API. None
of it has a part in the answer to a request that brings neither cookie nor origin and gets JSON, so such a request goes
around it. View, conventions and the headers of all answers are the same on both ways; the tests compare them.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from django.utils.module_loading import import_string

from config.api import accept
from config.api.requests import REFUSED
from config.api.viewsets import Conventions

# The middlewares that do nothing on the short way, and why.
LEFT_OUT = {
    "django.middleware.csrf.CsrfViewMiddleware": "nobody is signed in by a cookie",
    "config.api.browsable.BrowsableMiddleware": "the answer is for a program",
    "corsheaders.middleware.CorsMiddleware": "the request names no origin; Vary names Origin by itself",
    "whitenoise.middleware.WhiteNoiseMiddleware": "the address leads to a view",
    "django.contrib.sessions.middleware.SessionMiddleware": "there is no cookie",
    "config.api.middleware.HostMiddleware": "the host was looked at",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "there is no session",
    "django.contrib.messages.middleware.MessageMiddleware": "there is no session",
    "config.api.exceptions.DomainErrorMiddleware": "the view has a handler of its own, and nothing was refused before",
}


class ShortWay:
    """Mixin of Django's handlers: chooses the way of a request."""

    _short: Callable[[HttpRequest], HttpResponse]

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async)  # type: ignore[misc]
        self._short = _chain()

    def get_response(self, request: Any) -> Any:
        if _is_plain(request):
            return self._short(request)
        return super().get_response(request)  # type: ignore[misc]


def _chain() -> Callable[[HttpRequest], HttpResponse]:
    respond = convert_exception_to_response(_respond)
    for name in reversed(settings.MIDDLEWARE):
        if name not in LEFT_OUT:
            respond = import_string(name)(respond)
    return respond


def _is_plain(request: Any) -> bool:
    """Whether all that is left out would do nothing. Finds the view on the way."""
    meta = request.META
    if "HTTP_COOKIE" in meta or "HTTP_ORIGIN" in meta or REFUSED in meta:
        return False
    if accept.choose(meta.get("HTTP_ACCEPT", "")).media_type != accept.JSON:
        return False
    try:
        request.get_host()
        match = resolve(request.path_info)
    except (SuspiciousOperation, Resolver404):
        return False
    request.resolver_match = match
    return issubclass(getattr(match.func, "cls", object), Conventions)


def _respond(request: Any) -> HttpResponse:
    match = request.resolver_match
    response: Any = match.func(request, *match.args, **match.kwargs)
    return response.render() if hasattr(response, "render") else response
