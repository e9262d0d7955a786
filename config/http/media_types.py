"""What an Accept header asks for: of the acceptable media types that of the highest `q`, then the first.

RFC 9110, section 12.5.1. Some of the JSON types name a version of the API as well.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from config.api.settings import settings
from config.api.versions.table import Version

JSON = "application/json"
HTML = "text/html"
PROBLEM_JSON = "application/problem+json"
JSON_API = "application/vnd.api+json"

_VENDOR_JSON = re.compile(rf"application/vnd\.{re.escape(settings.API_VENDOR)}\.v(?P<version>[0-9].*)\+json")
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


class MediaRange(NamedTuple):
    """One element of an Accept header.

    Attributes:
        media_type: in lower case; may be `*/*` or end in `/*`.
        quality: its `q`, 1.0 when it has none.
        version: the number that a JSON type names, as it was sent.
    """

    media_type: str
    quality: float
    version: str | None

    @property
    def is_json(self) -> bool:
        """Whether it is another name of `application/json`, which is what the answer will say."""
        return self.media_type in {PROBLEM_JSON, JSON_API} or bool(_VENDOR_JSON.fullmatch(self.media_type))


class Choice(NamedTuple):
    """Where an Accept header leads.

    Attributes:
        media_type: of the answer; None when none that there is can be accepted.
        version: that the chosen type names; without a type, one that is asked for and does not exist.
    """

    media_type: str | None
    version: str | None


def elements(header: str) -> Iterator[Element]:
    """What a header accepts, in the order given."""
    for part in _PART.findall(header):
        name, *pieces = (piece.strip() for piece in part.split(";"))
        parameters: dict[str, list[str]] = {}
        for parameter, _, value in (piece.partition("=") for piece in pieces):
            parameters.setdefault(parameter.strip().lower(), []).append(value.strip().strip('"'))
        quality = next((float(value) for value in parameters.get("q", ()) if _QUALITY.fullmatch(value)), 1.0)
        yield Element(name.lower(), quality, parameters)


def ranges(header: str) -> Iterator[MediaRange]:
    """The media ranges of an Accept header, in the order given."""
    for name, quality, parameters in elements(header):
        yield MediaRange(name, quality, _version(name, parameters.get("version", [])))


def _version(media_type: str, given: list[str]) -> str | None:
    if media_type == JSON_API:
        return ", ".join(dict.fromkeys(given)) if given else None
    vendor = _VENDOR_JSON.fullmatch(media_type)
    return vendor["version"] if vendor else None


def wants_problem_json(header: str) -> bool:
    """Whether an error is asked for as problem details: they are named, and JSON is not preferred to them.

    A client that names both alike means JSON for the data and problem details for the errors.
    """
    named = {one.name: one.quality for one in elements(header)}
    return named.get(PROBLEM_JSON, 0.0) > 0 and named[PROBLEM_JSON] >= named.get(JSON, 0.0)


def choose(header: str, available: tuple[str, ...] = (JSON, HTML)) -> Choice:
    """Which of the available media types answers, and which version of the API the header asks for by it.

    A range that names an unknown version can be met as little as an unknown type: the next one is taken.
    """
    return _choose(header or "*/*", available, tuple(settings.API_VERSIONS))


# Clients send the same few headers over and over; 8 KiB is the longest one that config.http.request_limits lets pass.
@lru_cache(maxsize=512)
def _choose(header: str, available: tuple[str, ...], versions: tuple[Version, ...]) -> Choice:
    numbers = {None, *map(str, versions)}
    given = list(ranges(header))
    candidates = [MediaRange(media_type, 1.0, None) for media_type in available]
    candidates += [one for one in given if one.is_json and JSON in available]
    weighed = [(_weight(candidate, given), candidate) for candidate in candidates]
    acceptable = [(weight, one) for weight, one in weighed if weight > (0, 0) and one.version in numbers]
    if acceptable:
        _, best = max(acceptable, key=lambda pair: pair[0])
        return Choice(JSON if best.is_json else best.media_type, best.version)
    return Choice(None, next((one.version for (quality, _), one in weighed if quality), None))


def _weight(candidate: MediaRange, given: list[MediaRange]) -> tuple[float, int]:
    """How welcome a type is: its `q`, then how early it stands. The most specific range that fits it decides."""
    fitting = [
        (specificity, one.quality, -place)
        for place, one in enumerate(given)
        if (specificity := _specificity(one, candidate))
    ]
    if not fitting:
        return 0.0, 0
    _, quality, place = max(fitting)
    return (quality, place) if quality else (0.0, 0)


def _specificity(one: MediaRange, candidate: MediaRange) -> int:
    """3 for the type itself, 2 for `application/*`, 1 for `*/*`, 0 for another type."""
    if (one.media_type, one.version) == (candidate.media_type, candidate.version):
        return 3
    main_type = candidate.media_type.partition("/")[0]
    return {f"{main_type}/*": 2, "*/*": 1}.get(one.media_type, 0)
