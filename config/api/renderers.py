"""Bytes of an answer: JSON for programs, the browsable API for people."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer, BrowsableAPIRenderer


def _exact(value: Any) -> Any:
    """What orjson has no form for: decimals as JSON numbers, digit by digit, never through a binary float."""
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(data: Any) -> bytes:
    return orjson.dumps(data, default=_exact, option=orjson.OPT_NON_STR_KEYS)


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
        return orjson.dumps(data, default=_exact, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
