from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from config.api import envelope
from config.api.viewsets import View
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
