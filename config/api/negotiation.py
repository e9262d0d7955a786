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

PROBLEM_JSON = "application/problem+json"
_QUALITY = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)
# A quoted parameter may hold the separators.
_PART = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')


def accepted(header: str) -> Iterator[tuple[str, float]]:
    """The media ranges of an Accept header with their `q`, the highest first, in the order given."""
    ranges = []
    for part in _PART.findall(header):
        media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
        qualities = [float(found[1]) for piece in parameters if (found := _QUALITY.fullmatch(piece))]
        ranges.append((media_range, qualities[0] if qualities else 1.0))
    # sorted() is stable: equals stay in the order given.
    return iter(sorted(ranges, key=lambda one: -one[1]))


def wants_problem_json(header: str) -> bool:
    return any(media_range == PROBLEM_JSON and quality > 0 for media_range, quality in accepted(header))


class Negotiation(BaseContentNegotiation):
    """JSON for every JSON type the contract names, the browsable API where `text/html` wins."""

    json_aliases = re.compile(rf"application/(problem\+json|vnd\.api\+json|vnd\.{settings.API_VENDOR}\.v[0-9]+\+json)")

    def covers(self, media_range: str, renderer: BaseRenderer) -> bool:
        main_type = renderer.media_type.partition("/")[0]
        if media_range in {"*/*", f"{main_type}/*", renderer.media_type}:
            return True
        return renderer.format == "json" and self.json_aliases.fullmatch(media_range) is not None

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        ranges = list(accepted(request.META.get("HTTP_ACCEPT") or "*/*"))
        refused = {media_range for media_range, quality in ranges if quality == 0}
        for media_range, quality in ranges:
            for renderer in renderers:
                if quality > 0 and renderer.media_type not in refused and self.covers(media_range, renderer):
                    return renderer, renderer.media_type
        raise DomainError(
            ErrorCode.NOT_ACCEPTABLE,
            f"Available: {', '.join(renderer.media_type for renderer in renderers)}.",
        )
