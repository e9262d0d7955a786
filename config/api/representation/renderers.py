"""The renderers and the negotiation of one of them.

JSON for programs, the browsable API for people, and NDJSON and CSV for whole lists.
"""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from config.api.representation.formulas import escape_formula
from config.api.requests import select_parser
from config.api.versions import versioning
from config.api.versions.versioning import choose_media_type
from config.http.errors import DomainError, ErrorCode
from config.http.json import to_json
from config.http.media_types import CSV, NDJSON


class JSONRenderer(BaseRenderer):
    """JSON.

    Attributes:
        is_page: whether what it gives will be shown on a page.
    """

    is_page = False
    media_type = "application/json"
    # JSON is UTF-8 by definition (RFC 8259, section 8.1); the media type has no charset parameter.
    charset = None

    def render(
        self, data: object, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else to_json(data)


class TextRenderer(BaseRenderer):
    """Text, in bytes or not."""

    media_type = "text/plain"

    def render(self, data: Any, *context: object) -> Any:
        return data


class ProblemRenderer(JSONRenderer):
    """For errors alone: the exception handler picks it where the client accepts problem details."""

    media_type = "application/problem+json"


class BrowsableRenderer(JSONRenderer):
    """Stands for the browsable API where a view says what it answers with: JSON, which config.api.browsable shows.

    Until then the answer says that it is JSON. Nothing that a browser would take for a page comes out of here.
    """

    is_page = True
    media_type = "text/html"

    def render(
        self, data: object, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if renderer_context is not None and data is not None:
            renderer_context["response"]["Content-Type"] = JSONRenderer.media_type
        return super().render(data, accepted_media_type, renderer_context)


def render_as_data(request: Request) -> None:
    """Sees to it that an error or a description can be rendered: a page of its own template cannot show one."""
    if not isinstance(getattr(request, "accepted_renderer", None), JSONRenderer):
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type


class Negotiation(BaseContentNegotiation):
    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser:
        return select_parser(request, parsers)

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        of_type = {renderer.media_type: renderer for renderer in renderers}
        media_type, version = choose_media_type(request.META.get("HTTP_ACCEPT", ""), tuple(of_type))
        if media_type:
            return of_type[media_type], media_type
        if version is not None:
            raise versioning.unsupported(version, status=406)
        raise DomainError(ErrorCode.NOT_ACCEPTABLE, f"Available: {', '.join(of_type)}.")


class StreamRenderer(BaseRenderer):
    """A format of whole lists, row by row (config.api.streams). What is no such list has no such form.

    Attributes:
        content_type: with its parameters.
    """

    charset = None
    content_type: str

    def render_beginning(self, names: Sequence[str]) -> bytes:
        """The text before the rows, whose fields are known."""
        return b""

    def render_rows(self, rows: Sequence[Mapping[str, object]]) -> bytes:
        raise NotImplementedError


# Line ends for Python's `splitlines` and the like that JSON allows in a string without an escape.
_LINE_ENDS = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\u0085\u2028\u2029"}


class NDJSONRenderer(StreamRenderer):
    """A representation a line: that of a page, in which no string holds what readers may take for the end of a line."""

    media_type = content_type = NDJSON

    def render_rows(self, rows: Sequence[Mapping[str, object]]) -> bytes:
        lines = b"".join([to_json(row) + b"\n" for row in rows])
        for end, escaped in _LINE_ENDS.items():
            lines = lines.replace(end, escaped)
        return lines


class CSVRenderer(StreamRenderer):
    """A table for spreadsheets (RFC 4180), in which no cell is a formula."""

    media_type = CSV
    content_type = f"{CSV}; charset=utf-8; header=present"

    def render_beginning(self, names: Sequence[str]) -> bytes:
        return _write_lines([names])

    def render_rows(self, rows: Sequence[Mapping[str, object]]) -> bytes:
        return _write_lines([[_get_cell(value) for value in row.values()] for row in rows])


def _write_lines(lines: Sequence[Sequence[str]]) -> bytes:
    written = StringIO()
    csv.writer(written).writerows(lines)
    return written.getvalue().encode()


def _get_cell(value: object) -> str:
    """Text as it is, nothing for null, and everything else as in JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return escape_formula(value)
    return to_json(value).decode().strip('"')
