"""Parses Accept and Accept-Encoding headers (RFC 9110, section 12.5)."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from config.http.headers import OPTIONAL_WHITESPACE

JSON = "application/json"
HTML = "text/html"
PROBLEM_JSON = "application/problem+json"
JSON_API = "application/vnd.api+json"
# One JSON object a line.
NDJSON = "application/x-ndjson"
CSV = "text/csv"
# The names of the charset, in lower case: the registered one, and its label in the Encoding Standard.
UTF_8 = ("utf-8", "utf8")
# The media types of responses, the default first.
MEDIA_TYPES = (JSON, HTML, NDJSON, CSV)

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
