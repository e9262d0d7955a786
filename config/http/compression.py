"""Content coding: gzip where the client accepts it and the answer is long enough to gain by it.

Django's own middleware makes a strong entity tag weak. Here the coding is chosen before the tag is made, which names it
(config.http.etags), and the same content always gives the same bytes.
"""

import gzip
import re
import zlib
from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from config.http.headers import parse_elements, vary_on

# Below, what is saved is less than a packet.
MIN_BYTES = 1024
GZIP = "gzip"
_LEVEL = 5
_VARIABLE = "HTTP_ACCEPT_ENCODING"
_TEXT = re.compile(r"text/|application/(.+\+)?(json|javascript|x-ndjson)\b|image/svg\+xml\b")


def choose_coding(request: HttpRequest, response: HttpResponseBase, length: int | None = None) -> str | None:
    """The coding in which an answer goes out, None for none. Says in `Vary` that Accept-Encoding had a part in it.

    An answer with secrets, or one that a browser fetched by its cookie or Basic, is left alone: an attacker who can
    make it repeat guesses would read the rest from its length (BREACH). A page repeats the query in its links.

    Args:
        request: whose answer it is.
        response: with its Content-Type and its Cache-Control.
        length: of the content, where the response does not hold all of it.
    """
    headers = response.headers
    if "no-store" in headers.get("Cache-Control", "") or not is_compressible(headers.get("Content-Type", "")):
        return None
    vary_on(response, "Accept-Encoding")
    # Most programs name none, and need not wait for the rest.
    if _VARIABLE not in request.META:
        return None
    if length is None:
        length = len(response.content)  # type: ignore[attr-defined]  # of a response that holds its content
    # Cookies last: to parse them takes longer than the rest.
    return GZIP if prefers_gzip(request, length) and not _sent_by_browser(request) else None


def is_compressible(content_type: str) -> bool:
    """Whether content of a media type gets shorter by gzip."""
    return bool(_TEXT.match(content_type))


def prefers_gzip(request: HttpRequest, length: int) -> bool:
    """Whether to compress so many bytes of content: the client accepts gzip, and they are enough to gain by it."""
    gzipped, plain = _parse_qualities(request.META.get(_VARIABLE, ""))
    return bool(gzipped) and gzipped >= plain and (length >= MIN_BYTES or not plain)


def _sent_by_browser(request: HttpRequest) -> bool:
    """Whether a browser adds the credential by itself, even to requests that another site makes it send."""
    basic = request.META.get("HTTP_AUTHORIZATION", "").lower().startswith("basic")
    return basic or settings.SESSION_COOKIE_NAME in request.COOKIES


def _parse_qualities(header: str) -> tuple[float, float]:
    """The qualities of gzip and of no coding (RFC 9110, section 12.5.3); the least there is for the one not named."""
    named = {one.name: one.quality for one in parse_elements(header)}
    others = named.get("*")
    gzipped = named.get(GZIP, named.get("x-gzip", others or 0.0))
    return gzipped, named.get("identity", 0.001 if others is None else others)


def compress(response: HttpResponse) -> None:
    response.content = compress_content(response.content)
    response["Content-Encoding"] = GZIP


def compress_content(content: bytes) -> bytes:
    """The content in gzip; always the same bytes for the same content."""
    return gzip.compress(content, _LEVEL, mtime=0)


def compress_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Content in gzip that is made piece by piece."""
    compressor = zlib.compressobj(_LEVEL, wbits=16 + zlib.MAX_WBITS)
    for piece in pieces:
        if compressed := compressor.compress(piece):
            yield compressed
    yield compressor.flush()
