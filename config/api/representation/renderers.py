"""Bytes of an answer: JSON for programs, the browsable API for people."""

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer

from config.http.json import to_json


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


class BrowsableRenderer(JSONRenderer):
    """Stands for the browsable API where a view says what it answers with: JSON, which config.api.browsable shows.

    Until then the answer says that it is JSON. Nothing that a browser would take for a page comes out of here.
    """

    media_type = "text/html"
    format = "page"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if renderer_context is not None and data is not None:
            renderer_context["response"]["Content-Type"] = JSONRenderer.media_type
        return super().render(data, accepted_media_type, renderer_context)


def is_browsable(answer: Any) -> bool:
    """Whether an answer of a view will be shown on a page."""
    return isinstance(getattr(answer, "accepted_renderer", None), BrowsableRenderer)


def render_as_data(request: Any) -> None:
    """Sees to it that an error or a description can be rendered: a page of its own template cannot show one."""
    if not isinstance(getattr(request, "accepted_renderer", None), JSONRenderer):
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
