"""Bytes of an answer: JSON for programs, the browsable API for people."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer, BrowsableAPIRenderer

_OPTIONS = orjson.OPT_UTC_Z


def _exact(value: Any) -> Any:
    """What orjson has no form for: decimals as JSON numbers, digit by digit, never through a binary float."""
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(data: Any) -> bytes:
    return orjson.dumps(data, default=_exact, option=_OPTIONS)


class JSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    # JSON is UTF-8 by definition (RFC 8259, section 8.1); the media type has no charset parameter.
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else to_json(data)


class ProblemRenderer(JSONRenderer):
    """For errors alone: the exception handler picks it where the client accepts problem details."""

    media_type = "application/problem+json"
    format = "problem"


class BrowsableRenderer(BrowsableAPIRenderer):
    """The browsable API. Its forms would post form-encoded bodies, which no view accepts."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        # The page names the method; the one that HEAD asks about is GET's.
        http_request = renderer_context["request"]._request
        method = http_request.method
        http_request.method = "GET" if method == "HEAD" else method
        try:
            return super().render(data, accepted_media_type, renderer_context)
        finally:
            http_request.method = method

    def get_context(self, data: Any, accepted_media_type: str, renderer_context: Any) -> dict[str, Any]:
        # An inline style for highlighted code, of which there is none; the Content-Security-Policy refuses it.
        return {**super().get_context(data, accepted_media_type, renderer_context), "code_style": ""}

    def get_default_renderer(self, view: Any) -> BaseRenderer:
        return JSONRenderer()

    def show_form_for_method(self, view: Any, method: str, request: Any, obj: Any) -> bool:
        return False

    def get_rendered_html_form(self, data: Any, view: Any, method: str, request: Any) -> str | None:
        return None

    def get_raw_data_form(self, data: Any, view: Any, method: str, request: Any) -> str | None:
        return None

    def get_content(self, renderer: BaseRenderer, data: Any, media_type: str, context: Any) -> str:
        if data is None:
            return ""
        return orjson.dumps(data, default=_exact, option=_OPTIONS | orjson.OPT_INDENT_2).decode()


def render_as_data(request: Any) -> None:
    """Sees to it that an error or a description can be rendered: a page of its own template cannot show one."""
    if not isinstance(getattr(request, "accepted_renderer", None), JSONRenderer | BrowsableRenderer):
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
