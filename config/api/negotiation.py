"""Which media type answers a request: of the acceptable ones that of the highest `q`, then the first.

RFC 9110, section 12.5.1.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from config.api.errors import DomainError, ErrorCode

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
_QUALITY = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)
# A quoted parameter may hold the separators. Possessive, and content with a quote that never ends: linear in time.
_PART = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.?)*+"?)++')


def accepted(header: str) -> Iterator[tuple[str, float]]:
    """The media ranges of an Accept header in the order given, each with its `q`."""
    for part in _PART.findall(header):
        media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
        qualities = [float(found[1]) for piece in parameters if (found := _QUALITY.fullmatch(piece))]
        yield media_range, qualities[0] if qualities else 1.0


def wants_problem_json(header: str) -> bool:
    """Whether an error is asked for as problem details: they are named, and JSON is not preferred to them.

    A client that names both alike means JSON for the data and problem details for the errors.
    """
    named = dict(accepted(header))
    return named.get(PROBLEM_JSON, 0.0) > 0 and named[PROBLEM_JSON] >= named.get(JSON, 0.0)


class Negotiation(BaseContentNegotiation):
    """JSON for every JSON type the contract names, the browsable API where `text/html` wins."""

    json_aliases = re.compile(rf"application/(problem\+json|vnd\.api\+json|vnd\.{settings.API_VENDOR}\.v[0-9]+\+json)")

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        ranges = list(accepted(request.META.get("HTTP_ACCEPT") or "*/*"))
        weighed = [(self._weight(renderer, ranges), renderer) for renderer in renderers]
        (quality, _), best = max(weighed, key=lambda one: one[0])
        if quality == 0:
            available = ", ".join(renderer.media_type for renderer in renderers)
            raise DomainError(ErrorCode.NOT_ACCEPTABLE, f"Available: {available}.")
        return best, best.media_type

    def _weight(self, renderer: BaseRenderer, ranges: Sequence[tuple[str, float]]) -> tuple[float, int]:
        """How welcome a type is: its `q`, then how early it stands. The most specific range that fits it decides."""
        fitting = [
            (specificity, quality, -place)
            for place, (media_range, quality) in enumerate(ranges)
            if (specificity := self._specificity(media_range, renderer))
        ]
        if not fitting:
            return 0.0, 0
        _, quality, place = max(fitting)
        return quality, place

    def _specificity(self, media_range: str, renderer: BaseRenderer) -> int:
        """3 for the type itself or another name of JSON, 2 for `application/*`, 1 for `*/*`, 0 for another type."""
        if media_range == renderer.media_type:
            return 3
        if renderer.format == "json" and self.json_aliases.fullmatch(media_range):
            return 3
        main_type = renderer.media_type.partition("/")[0]
        return {f"{main_type}/*": 2, "*/*": 1}.get(media_range, 0)
