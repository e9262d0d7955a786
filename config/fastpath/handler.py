"""The way of a program's request to the API: its stack of middlewares, with requests and views of the fast path.

Replaces: `WSGIHandler` and the URL resolver. Buys: a fifth of a read. Views and headers are those of the reference;
tests/system/differential compares them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any
from wsgiref.types import WSGIEnvironment

from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import HttpResponse
from django.urls import Resolver404, ResolverMatch, resolve

from config.api.handlers import build_api_stack
from config.api.versions.versioning import choose_media_type, is_versioned
from config.fastpath.http import FastHeaders, FastRequest, set_default_headers
from config.fastpath.views import accelerate
from config.http.media_types import JSON, MEDIA_TYPES
from config.http.middleware import GetResponse, get_security_headers
from config.http.request_state import get_state
from config.http.url_map import View

_NUMBER = re.compile(r"(?<=/)([0-9]+)(?=/|\Z)")
# Takes the place of a number; no address that leads somewhere holds it.
_PLACEHOLDER = "\0"


def build_request(environ: WSGIEnvironment) -> FastRequest | None:
    """The request of a WSGI environment if it may take the fast path; the environment belongs to it from then on."""
    if environ.get("SCRIPT_NAME") or environ.get("HTTP_COOKIE") or get_state(environ).refused:
        return None
    # Where JSON comes before all else, it comes before a page: the request takes API_MIDDLEWARE.
    if choose_media_type(environ.get("HTTP_ACCEPT", ""), MEDIA_TYPES).media_type != JSON:
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
    # What it does is done here at once.
    return build_api_stack(_call_view, without="config.http.middleware.SecurityHeadersMiddleware")


def _call_view(request: Any) -> HttpResponse:
    response: HttpResponse = request.view(request, **request.view_kwargs).render()
    return response


@lru_cache(maxsize=64)
def _get_security_headers(is_secure: bool, content_type: str) -> FastHeaders:
    return FastHeaders(get_security_headers(is_secure, content_type))


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
    if not is_versioned(path):
        return None, None, ()
    try:
        match = resolve(path)
    except Resolver404:
        return None, None, ()
    view = accelerate(match.func)
    if view is None:
        return None, None, ()
    numbers = [(name, 2 * int(value[1:]) + 1) for name, value in match.kwargs.items() if value.startswith(_PLACEHOLDER)]
    return match, view, numbers


@receiver(setting_changed)
def _forget_settings(**options: object) -> None:
    """Tests override settings."""
    for cached in (_get_stack, _resolve_form, _get_security_headers):
        cached.cache_clear()
