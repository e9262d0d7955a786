from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import services
from accounts.models import APIKey
from accounts.permissions import APIKeyPermission
from accounts.serializers import APIKeySerializer, RotationSerializer
from config import audit
from config.api import envelope
from config.api.errors import forbidden, not_found
from config.api.links import Link
from config.api.permissions import CredentialPermission
from config.api.viewsets import ResourceViewSet, View, id_of
from users.models import Role

_PROTECTED = inline_serializer(
    "Protected",
    {
        "user": inline_serializer(
            "Caller",
            {
                "id": serializers.IntegerField(),
                "name": serializers.CharField(),
                "email": serializers.CharField(),
                "role": serializers.ChoiceField(Role.choices),
            },
        ),
        "credential": inline_serializer(
            "Credential",
            {
                "kind": serializers.ChoiceField(["api_key", "jwt", "oauth", "basic", "session"]),
                "expires_at": serializers.DateTimeField(allow_null=True),
            },
        ),
        "scopes": serializers.ListField(child=serializers.CharField()),
    },
)


class ProtectedView(View):
    """Who the service takes the caller for, and what the credential allows."""

    permission_classes = [CredentialPermission]

    @extend_schema(responses=_PROTECTED)
    def get(self, request: Request, **kwargs: str) -> Response:
        principal = request.auth
        user = principal.user
        return Response(
            envelope.single(
                {
                    "user": {"id": user.pk, "name": user.name, "email": user.email, "role": user.role},
                    "credential": {"kind": principal.kind, "expires_at": principal.expires_at},
                    "scopes": sorted(principal.scopes),
                }
            )
        )


class APIKeyViewSet(ResourceViewSet):
    """API keys: one's own, and for administrators everybody's."""

    queryset = APIKey.objects.all()
    serializer_class = APIKeySerializer
    permission_classes = [APIKeyPermission]
    scope = None
    cache_control = "no-store"
    http_method_names = ["get", "post", "delete", "head", "options"]
    links = (
        Link("self", "/api-keys/{0.id}"),
        Link("delete", "/api-keys/{0.id}", method="DELETE", when=APIKeyPermission.may_change),
    )

    def get_queryset(self) -> QuerySet[APIKey]:
        rows: Any = super().get_queryset()
        # The list shows what the credential may read; a single key of somebody else is refused by name instead.
        own_only = self.action == "list" and not self.principal.made_from_password
        return rows.of(self.principal) if own_only else rows

    def perform_create(self, serializer: APIKeySerializer) -> APIKey:
        values = {"scopes": self.principal.scopes, **serializer.validated_data}
        row, key = services.create_api_key(self.principal.user, **values)
        return self.told("api_key.created", row, key)

    def told(self, event: str, row: APIKey, key: str) -> APIKey:
        """Puts the key on the answer, this once."""
        audit.record(event, self.request, user=self.principal.user, key=row.prefix)
        row.key = key
        return row

    def perform_destroy(self, instance: APIKey) -> None:
        services.revoke_api_key(instance)
        audit.record("api_key.revoked", self.request, user=instance.user, key=instance.prefix)


class RotationViewSet(APIKeyViewSet):
    """The successors of a key, which are made here and read as keys."""

    serializer_class = RotationSerializer
    http_method_names = ["post", "options"]

    def perform_create(self, serializer: RotationSerializer) -> APIKey:
        old = APIKey.objects.visible_to(self.principal).select_for_update(no_key=True).filter(pk=self.key_id).first()
        if old is None:
            raise not_found()
        if old.user_id != self.principal.user.pk:
            raise forbidden("A key is rotated by its own user.")
        overlap = timedelta(seconds=serializer.validated_data["overlap_seconds"])
        return self.told("api_key.rotated", *services.rotate_api_key(old, overlap))

    @property
    def key_id(self) -> int:
        return id_of(self.kwargs["api_key_id"])
