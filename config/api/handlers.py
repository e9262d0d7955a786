"""Django's handler with two stacks of middlewares: a short one for programs that call the API, MIDDLEWARE for all else.

Sessions, CSRF, messages, files and the browsable API have no part in the response to a program, which brings no cookie
and prefers no page.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from config.api.exceptions import answer_to
from config.api.versions.versioning import choose_media_type, is_versioned
from config.http.media_types import HTML
from config.http.middleware import GetResponse
from config.http.request_state import get_state


def is_from_program(environ: Mapping[str, Any]) -> bool:
    """Whether a request takes the stack of API_MIDDLEWARE."""
    if environ.get("HTTP_COOKIE") or not is_versioned(environ.get("PATH_INFO", "")):
        return False
    return choose_media_type(environ.get("HTTP_ACCEPT", "")).media_type != HTML


def build_api_stack(get_response: GetResponse, without: str = "") -> GetResponse:
    """API_MIDDLEWARE around a function. What the view raises, and a middleware that refuses requests, is a response for
    those around it, as Django makes it.

    Args:
        get_response: runs the view.
        without: a middleware to leave out.
    """
    stack: Any = convert_exception_to_response(get_response)
    for name in reversed(settings.API_MIDDLEWARE):
        if name == without:
            continue
        middleware = import_string(name)
        try:
            stack = middleware(stack)
        except MiddlewareNotUsed:
            continue
        if getattr(middleware, "refuses", False):
            stack = convert_exception_to_response(stack)
    whole: Any = convert_exception_to_response(stack)
    return whole


class StacksMixin(BaseHandler):
    """Chooses the stack of each request."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async)
        pages: Any = self._middleware_chain  # type: ignore[has-type]
        programs = build_api_stack(self._run_view)
        self._middleware_chain = lambda request: (programs if is_from_program(request.META) else pages)(request)

    def _run_view(self, request: HttpRequest) -> HttpResponse:
        if (refused := get_state(request.META).refused) is not None:
            return answer_to(request, refused)
        return self._get_response(request)  # type: ignore[attr-defined]  # the stubs leave it out


class Handler(StacksMixin, WSGIHandler):
    """The WSGI application of the service, without what `config.server` adds."""
