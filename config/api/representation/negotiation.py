"""Content negotiation: JSON for every JSON type the contract names, the browsable API where `text/html` wins."""

from collections.abc import Sequence
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from config.api.requests import select_parser
from config.api.versions import versioning
from config.api.versions.accept import choose_media_type
from config.http.errors import DomainError, ErrorCode


class Negotiation(BaseContentNegotiation):
    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        return select_parser(request, parsers)

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        of_type = {renderer.media_type: renderer for renderer in renderers}
        media_type, version = choose_media_type(request.META.get("HTTP_ACCEPT", ""), tuple(of_type))
        if media_type:
            return of_type[media_type], media_type
        if version is not None:
            raise versioning.unsupported(version, status=406)
        raise DomainError(ErrorCode.NOT_ACCEPTABLE, f"Available: {', '.join(of_type)}.")
