from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from accounts.models import APIKey
from config.api.principal import AUDIT_SCOPE, SCOPES
from config.api.representation.fields import CharField, DateTimeField, MultiChoiceField, OverlapField
from config.api.representation.serializers import ResourceSerializer, StrictSerializer
from config.http.errors import forbidden
from users.models import Role
from users.serializers import NEW_PASSWORD

FIELDS: tuple[str, ...] = (*APIKey.archived, "key")


@extend_schema_serializer(component_name="ApiKey")
class APIKeySerializer(ResourceSerializer):
    example: ClassVar[Mapping[str, object]] = {
        "id": 3,
        "name": "Report",
        "prefix": "urs_Example",
        "scopes": ["users:read"],
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "expires_at": None,
        "last_used_at": None,
        "revoked_at": None,
        "key": "urs_Example-of-a-key-that-opens-nothing",
    }
    shown_once = ("key",)

    scopes = MultiChoiceField(
        choices=SCOPES, required=False, help_text="The scopes of the key. Default: all scopes except `audit:read`."
    )
    expires_at = DateTimeField(required=False, allow_null=True, help_text="When the key expires. Default: never.")
    # Only on the answer that made the key: a row does not have it.
    key = CharField(read_only=True, max_length=64)

    class Meta:
        model = APIKey
        fields = FIELDS
        read_only_fields: tuple[str, ...] = ("prefix", "last_used_at", "revoked_at")
        extra_kwargs = {"name": {"help_text": "A name of your own."}}

    def to_internal_value(self, data: Mapping[str, Any]) -> dict[str, object]:
        given, may_give = data.get("scopes"), self.principal and self.principal.user.is_administrator
        if isinstance(given, list) and AUDIT_SCOPE in given and not may_give:
            raise forbidden(f"Only administrators can give the scope {AUDIT_SCOPE}.", "scopes")
        return super().to_internal_value(data)

    def validate_expires_at(self, value: datetime | None) -> datetime | None:
        if value is not None and value <= timezone.now():
            raise ValidationError("Must be in the future.")
        return value


@extend_schema_serializer(component_name="Rotation")
class RotationSerializer(APIKeySerializer):
    example = {**APIKeySerializer.example, "overlap_seconds": OverlapField.DEFAULT}
    overlap_seconds = OverlapField("For how many seconds the old key keeps working.")

    class Meta(APIKeySerializer.Meta):
        fields = (*FIELDS, "overlap_seconds")
        read_only_fields = FIELDS

    scopes = MultiChoiceField(choices=SCOPES, read_only=True)
    expires_at = DateTimeField(read_only=True)


class EmailSerializer(StrictSerializer):
    example = {"email": "ada.lovelace@example.net"}
    # Any text: what is no email is nobody's, and is answered like any other wrong one.
    email = CharField(max_length=254, help_text="The email address.")


class LoginSerializer(EmailSerializer):
    example = {**EmailSerializer.example, "password": "four plain words here"}
    password = CharField(max_length=128, help_text="The password.")


class PasswordSerializer(StrictSerializer):
    example = {"password": "four plain words here"}
    password = CharField(max_length=128, help_text=NEW_PASSWORD)


class RefreshTokenSerializer(StrictSerializer):
    example = {"refresh_token": "header.payload.signature"}
    refresh_token = CharField(help_text="The refresh token.")


class TokenPairSerializer(serializers.Serializer):
    """The tokens of a login, in the words of RFC 6749, section 5.1."""

    example = {
        "access_token": "header.payload.signature",
        "refresh_token": "header.payload.signature",
        "token_type": "Bearer",
        "expires_in": 900,
    }

    access_token = serializers.CharField(max_length=2048)
    refresh_token = serializers.CharField(max_length=2048)
    token_type = serializers.ChoiceField(["Bearer"])
    expires_in = serializers.IntegerField(help_text="Seconds until the access token expires.")


class SessionSerializer(serializers.Serializer):
    """Where somebody is signed in."""

    example: ClassVar[Mapping[str, object]] = {
        "id": "0190c2f4-7f6e-4a38-9a3f-2f6a1b6f2f10",
        "kind": "jwt",
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "last_used_at": datetime(2026, 12, 1, 9, 45, tzinfo=UTC),
        "address": "192.0.2.7",
        "user_agent": "curl/8.11.0",
    }

    id = serializers.UUIDField()
    # A second enum with words of CredentialKind would clash in generated Go.
    kind = serializers.RegexField("^(jwt|session)$", max_length=7)
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField()
    address = serializers.IPAddressField(allow_null=True)
    user_agent = serializers.CharField(max_length=300)


class CallerSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField(max_length=200)
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(Role.choices)


class CredentialSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(["api_key", "jwt", "oauth", "basic", "session"])
    expires_at = serializers.DateTimeField(allow_null=True)


class ProtectedSerializer(serializers.Serializer):
    """The caller as the service identifies it, and what the credential allows."""

    example: ClassVar[Mapping[str, object]] = {
        "user": {"id": 42, "name": "Ada Lovelace", "email": "ada.lovelace@example.net", "role": Role.USER},
        "credential": {"kind": "api_key", "expires_at": None},
        "scopes": ["users:read"],
    }

    user = CallerSerializer()
    credential = CredentialSerializer()
    scopes = MultiChoiceField(choices=SCOPES)
