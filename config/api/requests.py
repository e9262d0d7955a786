"""The request that views get: DRF's, but that no body is an empty body, and every header about the body is obeyed."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from config.http import request_limits
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.json import malformed

# RFC 9110, section 8.3.1: a media type and its parameters, each of which may be empty.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_TOKEN})=({_TOKEN}|"[^"\\]*")')


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
        return request_limits.content_type(self.META)


def select_parser(request: Request, parsers: Sequence[Any]) -> BaseParser:
    """The parser of a request's body, by the headers about it.

    Args:
        request: with a body.
        parsers: each with a `media_type` and the `methods` that it serves.

    Raises:
        DomainError: UNSUPPORTED_MEDIA_TYPE, or VALIDATION_ERROR for a Content-Range.
    """
    if "HTTP_CONTENT_ENCODING" in request.META:
        message = "Bodies are taken as they are, without Content-Encoding."
        raise DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message, headers={"Accept-Encoding": "identity"})
    if "HTTP_CONTENT_RANGE" in request.META:
        # It would replace the whole by the part (RFC 9110, section 14.5).
        raise invalid(Detail("Content-Range", "Parts of a representation are not taken; PATCH changes one."))
    by_type = {parser.media_type: parser for parser in parsers if request.method in parser.methods}
    parsed = _parse_content_type(request.content_type)
    if parsed is None or parsed[0] not in by_type:
        raise _unsupported(request, f"Content-Type must be {' or '.join(by_type)}.", by_type)
    media_type, charsets = parsed
    if any(charset != "utf-8" for charset in charsets):
        raise _unsupported(request, "The charset must be UTF-8.", by_type)
    return by_type[media_type]


def _unsupported(request: Request, message: str, media_types: Any) -> DomainError:
    # RFC 5789, section 2.2
    header = "Accept-Patch" if request.method == "PATCH" else "Accept"
    return DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message, headers={header: ", ".join(media_types)})


@lru_cache(maxsize=64)
def _parse_content_type(header: str) -> tuple[str, list[str]] | None:
    """The media type and its charsets, in lower case; None when a parameter is none. No value of ours holds a `;`."""
    media_type, *parts = (part.strip(" \t").lower() for part in header.split(";"))
    parameters = [_PARAMETER.fullmatch(part) for part in parts if part]
    if None in parameters:
        return None
    return media_type, [found[2].strip('"') for found in parameters if found and found[1] == "charset"]
