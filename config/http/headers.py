"""The headers of requests and responses, and the addresses in them."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers


def set_headers(response: HttpResponseBase, headers: Mapping[str, str]) -> None:
    """Puts headers on a response, in the place of those that it has under the same names."""
    for name, value in headers.items():
        response.headers[name] = value


def set_default_headers(response: HttpResponseBase, headers: Mapping[str, str]) -> None:
    """Puts those headers on a response that it does not have yet."""
    for name, value in headers.items():
        response.headers.setdefault(name, value)


def vary_on(response: HttpResponseBase, *names: str) -> None:
    """Says in `Vary` that the response depends on these headers of the request."""
    present = response.headers.get("Vary")
    merged = merge_vary(present, names)
    if merged != present:
        response.headers["Vary"] = merged


# Few combinations occur, and each of them on most of the responses.
@lru_cache(maxsize=256)
def merge_vary(present: str | None, names: tuple[str, ...]) -> str:
    response = HttpResponse(headers={} if present is None else {"Vary": present})
    patch_vary_headers(response, names)
    return response.headers["Vary"]


def format_links(links: Mapping[str, Mapping[str, str]]) -> str:
    """The value of a `Link` header (RFC 8288) for links such as `{"next": {"href": "/users?page=2"}}`."""
    return ", ".join([f'<{link["href"]}>; rel="{relation}"' for relation, link in links.items()])


# RFC 3986, sections 3.3 and 3.4: what a path and a query may contain unescaped.
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"
_QUERY_CHARACTERS = f"{_PATH_CHARACTERS}?%"
# Nothing to quote, which is found out in a fraction of the time.
_PLAIN = re.compile(r"[A-Za-z0-9/_.~=&-]*")


def quote_address(path: str, query: str) -> str:
    """An address for a header, of a decoded path and a query as it was sent: bytes, read as Latin-1 (PEP 3333)."""
    sent = query and (query if _PLAIN.fullmatch(query) else quote(query.encode("latin-1"), safe=_QUERY_CHARACTERS))
    return f"{path if _PLAIN.fullmatch(path) else quote(path, safe=_PATH_CHARACTERS)}{'?' if sent else ''}{sent}"


# RFC 9110, section 5.6.3. Other blanks, as U+00A0, are bytes of a value, which is read as Latin-1.
OPTIONAL_WHITESPACE = " \t"


def split_values(header: str | None) -> list[str]:
    """The values of a header that may have been sent more than once: the server joins them by commas.

    None of these values holds a comma itself.
    """
    return [] if header is None else [value.strip(OPTIONAL_WHITESPACE) for value in header.split(",")]


# One that is not closed reaches to the end. Whatever comes, it matches, so that nothing is looked at twice.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.?)*"?', re.DOTALL)
_SCHEME = re.compile(r"([^\s=]+)[ \t]+(?!=)")


def split_credentials(header: str | None, schemes: Collection[str]) -> list[str]:
    """The credentials of an `Authorization` header that may have been sent more than once.

    Those of other schemes have parameters between commas (RFC 9110, section 11.4). They end where a credential of one
    of `schemes`, or of their own, begins.

    Args:
        schemes: in lower case, those whose credentials hold no comma.
    """
    values = split_values(header)
    scheme = values[0].partition(" ")[0].lower() if values else ""
    if header is None or len(values) == 1 or scheme in schemes:
        return values
    _, *others = split_values(_QUOTED.sub('""', header))
    begins = ((_SCHEME.match(value), value) for value in others)
    return [header, *(value for begin, value in begins if begin and begin[1].lower() in {*schemes, scheme})]


# --- Accept and Accept-Encoding (RFC 9110, section 12.5)

_QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
# A quoted parameter may hold the separators. Possessive, and content with a quote that never ends: linear in time.
_PART = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.?)*+"?)++')


class Element(NamedTuple):
    """One element of an Accept or Accept-Encoding header.

    Attributes:
        name: a media range or a coding, in lower case.
        quality: its `q`, 1.0 when it has none.
        parameters: the values of each parameter, as they were sent but for quotes.
    """

    name: str
    quality: float
    parameters: Mapping[str, list[str]]


def parse_elements(header: str) -> Iterator[Element]:
    """The elements of a header, in order."""
    for part in _PART.findall(header):
        name, *pieces = (piece.strip(OPTIONAL_WHITESPACE) for piece in part.split(";"))
        parameters: dict[str, list[str]] = {}
        for parameter, _, value in (piece.partition("=") for piece in pieces):
            parameters.setdefault(parameter.strip(OPTIONAL_WHITESPACE).lower(), []).append(
                value.strip(OPTIONAL_WHITESPACE).strip('"')
            )
        quality = next((float(value) for value in parameters.get("q", ()) if _QUALITY.fullmatch(value)), 1.0)
        yield Element(name.lower(), quality, parameters)
