from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from accounts.models import APIKey
from config.api.principal import SCOPES
from config.api.serializers import Integer, Moment, ResourceSerializer, StrictSerializer, Text, TextList

FIELDS: tuple[str, ...] = (
    "id",
    "name",
    "prefix",
    "scopes",
    "created_at",
    "expires_at",
    "last_used_at",
    "revoked_at",
    "key",
)
LONGEST_OVERLAP = 604_800
DEFAULT_OVERLAP = 86_400


class APIKeySerializer(ResourceSerializer):
    scopes = TextList(choices=SCOPES, required=False)
    expires_at = Moment(required=False, allow_null=True)
    # Only on the answer that made the key: a row does not have it.
    key = Text(read_only=True)

    class Meta:
        model = APIKey
        fields = FIELDS
        read_only_fields: tuple[str, ...] = ("prefix", "last_used_at", "revoked_at")

    def validate_expires_at(self, value: datetime | None) -> datetime | None:
        if value is not None and value <= timezone.now():
            raise ValidationError("Must lie in the future.")
        return value


class RotationSerializer(APIKeySerializer):
    overlap_seconds = Integer(write_only=True, required=False, min_value=0, max_value=LONGEST_OVERLAP)

    class Meta(APIKeySerializer.Meta):
        fields = (*FIELDS, "overlap_seconds")
        read_only_fields = FIELDS

    scopes = TextList(choices=SCOPES, read_only=True)
    expires_at = Moment(read_only=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"overlap_seconds": DEFAULT_OVERLAP, **attrs}


class LoginSerializer(StrictSerializer):
    # Any text: what is no email is nobody's, and is answered like any other wrong one.
    email = Text(max_length=254)
    password = Text(max_length=128)


class RefreshTokenSerializer(StrictSerializer):
    refresh_token = Text()


class TokenPairSerializer(serializers.Serializer):
    """The tokens of a login, in the words of RFC 6749, section 5.1."""

    access_token = serializers.CharField()
    refresh_token = serializers.CharField()
    token_type = serializers.ChoiceField(["Bearer"])
    expires_in = serializers.IntegerField(help_text="Seconds until the access token expires.")
