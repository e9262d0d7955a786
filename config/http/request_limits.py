"""What a request must satisfy before Django sees it, whichever server runs it."""

import re
from functools import lru_cache
from wsgiref.types import WSGIEnvironment

from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.request_state import get_state

# RFC 9110, section 4.1, asks for addresses of 8000 octets at least. The links of a page repeat the whole query.
MAX_TARGET = 8192
MAX_HEADER = 8192
# Every endpoint that takes a body takes this much; its `max_body` may allow more.
MAX_SHORT_BODY = 16 * 1024
# Longer ones cost seconds: the standard library reads parameters in quadratic time.
MAX_CONTENT_TYPE = 256

_MEDIA_TYPE = re.compile(r"[ \t]*+([!#$%&'*+.^_`|~0-9A-Za-z-]++/[!#$%&'*+.^_`|~0-9A-Za-z-]++)")
_BOUNDARY = re.compile(r""";[ \t]*+(boundary=(?:"[^"\\;]{1,70}"|[^"\\;\s]{1,70}))""", re.IGNORECASE)


def screen(environ: WSGIEnvironment) -> None:
    """Refuses what would cost too much to look at, and hides from Django what it must not obey.

    Django decodes the query string by whatever codec the Content-Type names, `utf-7` and `zlib` included. So it sees
    the media type and the boundary of a form; `sent_content_type` of its state tells what was sent.

    Args:
        environ: a WSGI environment, which is changed.

    Raises:
        DomainError: VALIDATION_ERROR for a long address or header, UNSUPPORTED_MEDIA_TYPE for a long Content-Type,
            NOT_IMPLEMENTED for a Transfer-Encoding other than `chunked`.
    """
    _check_transfer_encoding(environ.get("HTTP_TRANSFER_ENCODING"))
    if len(environ.get("PATH_INFO", "")) + len(environ.get("QUERY_STRING", "")) > MAX_TARGET:
        raise invalid(Detail("", f"The address is longer than {MAX_TARGET} characters."))
    if long := too_long(environ):
        message = f"The header is longer than {MAX_HEADER} characters."
        raise invalid(*(Detail(name[5:].replace("_", "-").title(), message) for name in long))
    given = environ.get("CONTENT_TYPE", "")
    if len(given) > MAX_CONTENT_TYPE:
        message = f"The Content-Type is longer than {MAX_CONTENT_TYPE} characters."
        raise DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message)
    get_state(environ).sent_content_type = given
    environ["CONTENT_TYPE"] = _without_parameters(given)


def _check_transfer_encoding(given: str | None) -> None:
    """RFC 9112, sections 6.1 and 6.3."""
    if given is None:
        return
    *others, last = (coding.strip(" \t").lower() for coding in given.split(","))
    if last != "chunked" or "chunked" in others:
        raise invalid(Detail("Transfer-Encoding", "Must end in chunked, once."))
    if others:
        # A body that is compressed on its way; one with a Content-Encoding is refused elsewhere.
        raise DomainError(ErrorCode.NOT_IMPLEMENTED)


def body_too_long(limit: int) -> DomainError:
    """The refusal of a body that has more bytes than a limit."""
    return DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body is longer than {limit} bytes.")


def too_long(environ: WSGIEnvironment) -> list[str]:
    """The variables of a WSGI environment that hold longer headers than are taken."""
    return [name for name, value in environ.items() if name[:5] == "HTTP_" and len(value) > MAX_HEADER]


# Clients send the same few, and what they make up is bounded by MAX_CONTENT_TYPE.
@lru_cache(maxsize=64)
def _without_parameters(given: str) -> str:
    media_type = _MEDIA_TYPE.match(given)
    boundary = _BOUNDARY.search(given)
    return "; ".join(found[1] for found in (media_type, boundary) if found) if media_type else ""
