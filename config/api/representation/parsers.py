"""The request bodies that the API takes."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from config.http.errors import DomainError, ErrorCode
from config.http.json import parse_json


class JSONParser(BaseParser):
    media_type = "application/json"
    methods = frozenset({"POST", "PUT", "PATCH"})

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body is longer than {limit} bytes.")
        return parse_json(body)


class MergePatchParser(JSONParser):
    """RFC 7396."""

    media_type = "application/merge-patch+json"
    methods = frozenset({"PATCH"})
