"""The form of an event, for the reference. config.events.representation makes events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.api.listing.cursors import CURSOR_CHARACTERS
from config.api.schema.fields import build_integer, build_object, build_string
from config.http.middleware import MAX_REQUEST_ID_LENGTH
from config.models.events import ACTIONS, TYPES

_WORD = "^[a-z_]+$"
_CURSOR = f"^{CURSOR_CHARACTERS}+$"
MAX_CURSOR = 512


class EventResourceSerializer(serializers.Serializer):
    type = serializers.RegexField(f"^({'|'.join(ACTIONS)})$", max_length=10)
    id = serializers.IntegerField(min_value=1)
    href = serializers.RegexField("^/[!-~]*$", max_length=200)


@extend_schema_field(
    build_object({"user_id": build_integer(1), "credential": build_string(10, _WORD)}) | {"type": ["object", "null"]}
)
class ActorField(serializers.ReadOnlyField):
    """The actor. It is no serializer, because openapi-generator has no type for a nullable component."""


class EventSerializer(serializers.Serializer):
    example: ClassVar[Mapping[str, object]] = {
        "id": 1204,
        "cursor": "vTq3Xo0m5dVb2mFhW1kqj2y0cRzJtA",
        "type": "post.updated",
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "resource": {"type": "post", "id": 17, "href": "/api/v2/posts/17"},
        "user_id": 42,
        "changed": ["title"],
        "actor": {"user_id": 1, "credential": "api_key"},
        "request_id": "7f6e4a389a3f2f6a1b6f2f10c4f2a7d1",
    }

    id = serializers.IntegerField(min_value=1)
    cursor = serializers.RegexField(_CURSOR, max_length=MAX_CURSOR)
    type = serializers.ChoiceField(TYPES)
    created_at = serializers.DateTimeField()
    resource = EventResourceSerializer()
    user_id = serializers.IntegerField(min_value=1)
    changed = serializers.ListField(child=serializers.RegexField(_WORD, max_length=50), max_length=10, allow_null=True)
    actor = ActorField()
    request_id = serializers.RegexField("^[A-Za-z0-9._~-]+$", max_length=MAX_REQUEST_ID_LENGTH, allow_null=True)
