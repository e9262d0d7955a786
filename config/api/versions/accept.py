"""Which media type an Accept header asks for, and which version of the API it names by it.

Of the acceptable media types the one of the highest `q` answers, then the first (RFC 9110, section 12.5.1).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings

from config.api.versions.table import Version
from config.http.media_types import HTML, JSON, JSON_API, PROBLEM_JSON, parse_elements

_VENDOR_JSON = re.compile(rf"application/vnd\.{re.escape(settings.API_VENDOR)}\.v(?P<version>[0-9].*)\+json")


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


def parse_ranges(header: str) -> Iterator[MediaRange]:
    """The media ranges of an Accept header, in the order given."""
    for name, quality, parameters in parse_elements(header):
        yield MediaRange(name, quality, _version(name, parameters.get("version", [])))


def _version(media_type: str, given: list[str]) -> str | None:
    if media_type == JSON_API:
        return ", ".join(dict.fromkeys(given)) if given else None
    vendor = _VENDOR_JSON.fullmatch(media_type)
    return vendor["version"] if vendor else None


def choose_media_type(header: str, available: tuple[str, ...] = (JSON, HTML)) -> Choice:
    """Which of the available media types answers, and which version of the API the header asks for by it.

    A range that names an unknown version can be met as little as an unknown type: the next one is taken.
    """
    return _choose(header or "*/*", available, tuple(settings.API_VERSIONS))


# Clients send the same few headers over and over; the longest one has 8 KiB (config.http.request_limits).
@lru_cache(maxsize=512)
def _choose(header: str, available: tuple[str, ...], versions: tuple[Version, ...]) -> Choice:
    numbers = {None, *map(str, versions)}
    given = list(parse_ranges(header))
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
