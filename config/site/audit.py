"""The audit trail over HTTP, for administrators: what the admin shows, in the list contract."""

from datetime import UTC, datetime

import django_filters
from django import forms
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from config.api.listing.filters import StrictFilterSet
from config.api.permissions import ResourcePermission
from config.api.representation.envelope import Link
from config.api.representation.serializers import ResourceSerializer
from config.api.viewsets import ResourceViewSet
from config.audit.trail import EVENTS
from config.http.errors import ErrorCode, forbidden
from config.models import AuditEvent


@extend_schema_field({"type": "object"})
class FactsField(serializers.ReadOnlyField):
    """What else is known of an event: never a secret, nor a name of a user."""


class AuditEventSerializer(ResourceSerializer):
    example = {
        "id": 5120,
        "at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "event": "user.changed",
        "user_id": 42,
        "address": "192.0.2.7",
        "request_id": "7f6e4a389a3f2f6a1b6f2f10c4f2a7d1",
        "facts": {"credential": "jwt", "by": 1, "changed": ["role"], "role": "support"},
    }
    user_id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="The user whom the event is about. Null if unknown or deleted."
    )
    address = serializers.IPAddressField(
        read_only=True, allow_null=True, help_text="The IP address of the request. Null without a request."
    )
    facts = FactsField(
        help_text="Details, which depend on `event`. `by` is the ID of the user who caused the event, if that is "
        "another user than `user_id`."
    )

    class Meta:
        model = AuditEvent
        fields = ("id", "at", "event", "user_id", "address", "request_id", "facts")
        read_only_fields = fields


class AddressFilter(django_filters.Filter):
    field_class = forms.GenericIPAddressField


class AuditEventFilterSet(StrictFilterSet):
    event = django_filters.ChoiceFilter(
        choices=[(event, event) for event in EVENTS],
        error_messages={"invalid_choice": f"Must be one of: {', '.join(EVENTS)}."},
    )
    address = AddressFilter(help_text="Returns only events of requests from this IP address.")


class AuditPermission(ResourcePermission):
    """An administrator, with a credential made from the password, or one that was given the scope."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        allowed = super().has_permission(request, view)
        if request.method != "OPTIONS" and not request.auth.user.is_administrator:
            raise forbidden("Only administrators can read the audit trail.")
        return allowed


class AuditEventViewSet(ResourceViewSet):
    """What happened to users and credentials."""

    texts = {
        "list": "Returns a page of the audit trail.\n\n"
        "Each event says what happened to a user or credential, who did it and from where, without names, emails and "
        "secrets. Only administrators can read the trail. An API key can read it only if `audit:read` was named in "
        "`scopes` when the key was created."
    }
    queryset = AuditEvent.objects.all()
    serializer_class = AuditEventSerializer
    permission_classes = [AuditPermission]
    filterset_class = AuditEventFilterSet
    staff_filters = ()
    scope = "audit"
    cache_control = "no-store"
    own_errors = {"GET": (ErrorCode.FORBIDDEN,)}
    http_method_names = ["get", "head", "options"]
    links = (Link("self", "/audit-events/{0.id}", "audit:read"),)


list_audit_events = AuditEventViewSet.as_view({"get": "list"}, detail=False, suffix="List", basename="audit-event")
