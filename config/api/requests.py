"""The request that views get: DRF's, except that no body is an empty body, and every header about the body is obeyed.

And its parsers, and how long its body may be: as long as its view can use.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from config.api.versions.table import Change, Version, has
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.json import JSONObject, RefusedLine, malformed, parse_json, parse_json_lines, refuse_lines
from config.http.media_types import NDJSON, UTF_8
from config.http.request_limits import MAX_SHORT_BODY, body_too_long
from config.http.request_state import get_state
from config.http.url_map import find_view, get_declaration

METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

# RFC 9110, section 8.3.1: a media type and its parameters, each of which may be empty.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_TOKEN})=({_TOKEN}|"[^"\\]*")')


# Django's, or DRF's around it: for code that both of them reach.
AnyRequest = HttpRequest | Request


class StrictRequest(Request):
    """DRF's request, but a missing body is refused instead of being read as `{}`."""

    refused = False

    @property
    def data(self) -> Any:
        if self.refused:
            # A page that shows the error asks again, for its forms.
            return {}
        try:
            if self.stream is None:
                raise malformed("it is empty")
            return super().data
        except DomainError:
            self.refused = True
            raise

    @property
    def content_type(self) -> str:
        """The header as it was sent, of which Django sees a part."""
        sent = get_state(self.META).sent_content_type
        return str(self.META.get("CONTENT_TYPE", "")) if sent is None else sent


def select_parser(request: Request, parsers: Sequence[BaseParser]) -> BaseParser:
    """The parser of a request's body, by the headers about it.

    Args:
        request: with a body.
        parsers: each with a `media_type`, the `methods` that it serves, and the change that it came with, if any.

    Raises:
        DomainError: UNSUPPORTED_MEDIA_TYPE, or VALIDATION_ERROR for a Content-Range.
    """
    if "HTTP_CONTENT_ENCODING" in request.META:
        message = "Send the body without Content-Encoding."
        raise DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message, headers={"Accept-Encoding": "identity"})
    if "HTTP_CONTENT_RANGE" in request.META:
        # It would replace the whole by the part (RFC 9110, section 14.5).
        raise invalid(Detail("Content-Range", "Content-Range is not supported. Use PATCH for partial changes."))
    found = find_parsers(parsers, str(request.method), getattr(request, "version", None))
    by_type = {parser.media_type: parser for parser in found}
    parsed = _parse_content_type(request.content_type)
    if parsed is None or parsed[0] not in by_type:
        raise _unsupported(request, f"Content-Type must be {' or '.join(by_type)}.", by_type)
    media_type, charsets = parsed
    if any(charset not in UTF_8 for charset in charsets):
        raise _unsupported(request, "The charset must be UTF-8.", by_type)
    return by_type[media_type]


def find_parsers(parsers: Iterable[Any], method: str, version: Version | None) -> list[Any]:
    """Those of the parsers that a method has in a version."""
    served = [parser for parser in parsers if method in parser.methods]
    return [parser for parser in served if parser.since is None or has(version, parser.since)]


def _unsupported(request: Request, message: str, media_types: Iterable[str]) -> DomainError:
    # RFC 5789, section 2.2
    header = "Accept-Patch" if request.method == "PATCH" else "Accept"
    return DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message, headers={header: ", ".join(media_types)})


def get_media_type(request: Request) -> str | None:
    """The media type of a request's body, in lower case; None where its header cannot be read."""
    parsed = _parse_content_type(request.content_type)
    return parsed and parsed[0]


@lru_cache(maxsize=64)
def _parse_content_type(header: str) -> tuple[str, list[str]] | None:
    """The media type and its charsets, in lower case; None if a parameter is malformed. No valid value has a `;`."""
    media_type, *parts = (part.strip(" \t").lower() for part in header.split(";"))
    parameters = [_PARAMETER.fullmatch(part) for part in parts if part]
    if None in parameters:
        return None
    return media_type, [found[2].strip('"') for found in parameters if found and found[1] == "charset"]


def find_max_body(method: str, path: str, media_type: str = "") -> int:
    """The bytes that a request's body may have, known before the body is read.

    It is what the view at the address declares as `max_body`. Pages, which do not, take DATA_UPLOAD_MAX_MEMORY_SIZE; so
    does a view with `bulk` of NDJSON.

    Args:
        method: methods that have no use for a body leave room for a short one, which is ignored.
        path: as a WSGI environment has it.
        media_type: of the body, as a WSGI environment has it once it is screened.
    """
    if method not in METHODS_WITH_BODY:
        return MAX_SHORT_BODY
    view = find_view(path)
    if media_type.lower() == NDJSON and method in NDJSONParser.methods and get_declaration(view, "bulk"):
        return _get_ceiling()
    return get_declaration(view, "max_body", _get_ceiling())


def _get_ceiling() -> int:
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0


class JSONParser(BaseParser):
    media_type = "application/json"
    methods = METHODS_WITH_BODY
    since: Change | None = None

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> JSONObject:
        # On a server that asked before it received the body, this is the second time.
        view = (parser_context or {}).get("view")
        return parse_json(_read(stream, getattr(view, "max_body", MAX_SHORT_BODY)))


class MergePatchParser(JSONParser):
    """RFC 7396."""

    media_type = "application/merge-patch+json"
    methods = frozenset({"PATCH"})


class NDJSONParser(BaseParser):
    """A JSON object a line, for views with `bulk`."""

    media_type = NDJSON
    methods = frozenset({"POST"})
    since = Change.NO_UNKNOWN_NAMES

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> list[JSONObject | RefusedLine]:
        lines = parse_json_lines(_read(stream, _get_ceiling()))
        if not getattr((parser_context or {}).get("view"), "is_partial", False):
            refuse_lines(lines)
        return lines


def _read(stream: IO[bytes], limit: int) -> bytes:
    body = stream.read(limit + 1)
    if len(body) > limit:
        raise body_too_long(limit)
    return body
