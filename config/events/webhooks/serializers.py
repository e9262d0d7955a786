from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from config.api.principal import SCOPES
from config.api.representation.fields import CharField, ChoiceField, IntegerField, MultiChoiceField, OverlapField
from config.api.representation.serializers import ResourceSerializer, StrictSerializer
from config.events.serializers import MAX_CURSOR
from config.events.webhooks.addresses import MAX_URL_LENGTH, AddressRefused, check_url
from config.events.webhooks.outcomes import MAX_ANSWER_BYTES, MAX_ERROR_LENGTH
from config.models import Webhook, WebhookDelivery
from config.models.events import SCOPES as READ_SCOPES
from config.models.events import TYPES

FIELDS: tuple[str, ...] = (
    "id",
    "user_id",
    "url",
    "types",
    "description",
    "status",
    "disabled_reason",
    "scopes",
    "version",
    "created_at",
    "updated_at",
    "secret",
)


@extend_schema_field({"type": "string", "pattern": "^(active|disabled)$", "maxLength": 8})
class StatusField(ChoiceField):
    """A second enum with `active`, beside that of users, would clash in generated Go."""


class WebhookSerializer(ResourceSerializer):
    example: ClassVar[Mapping[str, object]] = {
        "id": 9,
        "user_id": 42,
        "url": "https://example.com/hook",
        "types": ["user.updated", "payment.created"],
        "description": "Accounting",
        "status": "active",
        "disabled_reason": "",
        "scopes": ["users:read", "payments:read", "events:read", "webhooks:write"],
        "version": 2,
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "updated_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "new_secret": "whsec_RXhhbXBsZSBvZiBhIHNlY3JldCB0aGF0IHNpZ25z",
    }
    shown_once = ("secret",)
    serializer_choice_field = StatusField

    url = CharField(max_length=MAX_URL_LENGTH, help_text="The https URL that events are sent to.")
    types = MultiChoiceField(choices=TYPES, help_text="The types of events to send.")
    scopes = MultiChoiceField(choices=SCOPES, read_only=True)
    # Only on the answer that gave it: a row does not have it.
    secret = CharField(read_only=True, max_length=64, source="new_secret")

    class Meta:
        model = Webhook
        fields = FIELDS
        read_only_fields: tuple[str, ...] = ("user_id", "disabled_reason", "version")
        extra_kwargs = {
            "description": {"help_text": "A note of your own."},
            "status": {"help_text": "The status. Default: `active`."},
        }

    def validate_url(self, value: str) -> str:
        try:
            check_url(value)
        except AddressRefused as refused:
            raise ValidationError(str(refused)) from None
        return value

    def validate_types(self, value: list[str]) -> list[str]:
        if self.instance and (missing := sorted({READ_SCOPES[name] for name in value} - set(self.instance.scopes))):
            raise ValidationError(f"The webhook lacks the scope {missing[0]}. Create another one.")
        return value


class WebhookRotationSerializer(WebhookSerializer):
    example = {**WebhookSerializer.example, "overlap_seconds": OverlapField.DEFAULT}

    url = CharField(read_only=True, max_length=MAX_URL_LENGTH)
    types = MultiChoiceField(choices=TYPES, read_only=True)
    overlap_seconds = OverlapField("For how many seconds deliveries are signed with both secrets.")

    class Meta(WebhookSerializer.Meta):
        fields = (*FIELDS, "overlap_seconds")
        read_only_fields = FIELDS


class AttemptSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    duration_ms = serializers.IntegerField(min_value=0)
    status = serializers.IntegerField(
        allow_null=True,
        min_value=100,
        max_value=999,
        help_text="The status of your server's response. Null without a response.",
    )
    error = serializers.CharField(max_length=MAX_ERROR_LENGTH, help_text="Why there is no response.")
    body = serializers.CharField(max_length=MAX_ANSWER_BYTES, help_text="The first kilobyte of the response.")


class WebhookDeliverySerializer(ResourceSerializer):
    example: ClassVar[Mapping[str, object]] = {
        "id": 31,
        "webhook_id": 9,
        "type": "payment.created",
        "event_id": 1207,
        "status": "delivered",
        "created_at": datetime(2026, 12, 1, 9, 31, tzinfo=UTC),
        "due_at": datetime(2026, 12, 1, 9, 31, tzinfo=UTC),
        "attempts": [
            {"at": datetime(2026, 12, 1, 9, 31, tzinfo=UTC), "duration_ms": 83, "status": 204, "error": "", "body": ""}
        ],
    }

    event_id = IntegerField(read_only=True, allow_null=True, help_text="The event. Null for a ping.")
    attempts: Any = AttemptSerializer(many=True, read_only=True)

    class Meta:
        model = WebhookDelivery
        fields = ("id", "webhook_id", "type", "event_id", "status", "created_at", "due_at", "attempts")
        read_only_fields = ("webhook_id", "type", "event_id", "status")


class QueuedDeliverySerializer(WebhookDeliverySerializer):
    """A delivery without links, as what has it sent answers."""


class ReplaySerializer(StrictSerializer):
    example: ClassVar[Mapping[str, object]] = {"cursor": ""}

    cursor = CharField(
        max_length=MAX_CURSOR,
        allow_blank=True,
        help_text="The `cursor` of an event, or a `nextCursor` of `GET /events`. Empty: all stored events.",
    )
