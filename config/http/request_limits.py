"""What a request must be before Django may see it; asked by every server's adaptor (RSGI, WSGI)."""

import re
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from config.http.errors import Detail, DomainError, ErrorCode, invalid

# RFC 9110, section 4.1, asks for addresses of 8000 octets at least. The links of a page repeat the whole query.
MAX_TARGET = 8192
MAX_HEADER = 8192
# Longer ones cost seconds: the standard library reads parameters in quadratic time.
MAX_CONTENT_TYPE = 256

# Where the environment holds what kept a request from Django: a DomainError, or a fault of ours.
REFUSED = "config.refused"
_CONTENT_TYPE = "config.content_type"
_MEDIA_TYPE = re.compile(r"[ \t]*+([!#$%&'*+.^_`|~0-9A-Za-z-]++/[!#$%&'*+.^_`|~0-9A-Za-z-]++)")
_BOUNDARY = re.compile(r""";[ \t]*+(boundary=(?:"[^"\\;]{1,70}"|[^"\\;\s]{1,70}))""", re.IGNORECASE)


def screen(environ: MutableMapping[str, Any]) -> None:
    """Refuses what would cost too much to look at, and hides from Django what it must not obey.

    Django decodes the query string by whatever codec the Content-Type names, `utf-7` and `zlib` included. So it sees
    the media type and the boundary of a form; `content_type()` tells what was sent.

    Args:
        environ: a WSGI environment, which is changed.

    Raises:
        DomainError: VALIDATION_ERROR for a long address or header, UNSUPPORTED_MEDIA_TYPE for a long Content-Type.
    """
    if len(environ.get("PATH_INFO", "")) + len(environ.get("QUERY_STRING", "")) > MAX_TARGET:
        raise invalid(Detail("", f"The address is longer than {MAX_TARGET} characters."))
    long = too_long(environ)
    if long:
        message = f"The header is longer than {MAX_HEADER} characters."
        raise invalid(*(Detail(name[5:].replace("_", "-").title(), message) for name in long))
    given = environ.get("CONTENT_TYPE", "")
    if len(given) > MAX_CONTENT_TYPE:
        message = f"The Content-Type is longer than {MAX_CONTENT_TYPE} characters."
        raise DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message)
    environ[_CONTENT_TYPE] = given
    environ["CONTENT_TYPE"] = _without_parameters(given)


def too_long(environ: Mapping[str, Any]) -> list[str]:
    """The variables of a WSGI environment that hold longer headers than are taken."""
    return [name for name, value in environ.items() if name[:5] == "HTTP_" and len(value) > MAX_HEADER]


# Clients send the same few, and what they make up is bounded by MAX_CONTENT_TYPE.
@lru_cache(maxsize=64)
def _without_parameters(given: str) -> str:
    if not given:
        return ""
    media_type = _MEDIA_TYPE.match(given)
    boundary = _BOUNDARY.search(given)
    return "; ".join(found[1] for found in (media_type, boundary) if found) if media_type else ""


def content_type(environ: Mapping[str, Any]) -> str:
    """The Content-Type as the client sent it."""
    return environ.get(_CONTENT_TYPE, environ.get("CONTENT_TYPE", ""))
