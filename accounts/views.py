from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import logins, passwords
from accounts.serializers import LoginSerializer, RefreshTokenSerializer, TokenPairSerializer
from accounts.tokens import AccessToken, Pair
from config.api import envelope
from config.api.permissions import PublicPermission
from config.api.viewsets import View
from users.models import Role

NO_STORE = {"Cache-Control": "no-store"}

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


class TokenView(View):
    """An endpoint whose body is the credential: any other one of the request is not looked at."""

    permission_classes = [PublicPermission]
    authentication_classes: ClassVar[list[type]] = []
    serializer_class: ClassVar[type[serializers.Serializer]] = RefreshTokenSerializer

    def read(self, request: Request) -> dict[str, Any]:
        serializer = self.serializer_class(data=request.data)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def answer(self, pair: Pair) -> Response:
        data = {
            "access_token": str(pair.access),
            "refresh_token": str(pair.refresh),
            "token_type": "Bearer",
            "expires_in": int(AccessToken.lifetime.total_seconds()),
        }
        return Response(envelope.single(data), headers=NO_STORE)


class LoginView(TokenView):
    """Exchanges email and password for a pair of tokens."""

    serializer_class = LoginSerializer

    @extend_schema(request=LoginSerializer, responses=TokenPairSerializer)
    def post(self, request: Request, **kwargs: str) -> Response:
        given = self.read(request)
        return self.answer(logins.log_in(passwords.prove(request, **given, door="login")))


class RefreshView(TokenView):
    """Exchanges a refresh token, which can be used once, for a new pair."""

    @extend_schema(request=RefreshTokenSerializer, responses=TokenPairSerializer)
    def post(self, request: Request, **kwargs: str) -> Response:
        return self.answer(logins.refresh(self.read(request)["refresh_token"]))


class LogoutView(TokenView):
    """Ends the session of a refresh token, access tokens too."""

    @extend_schema(request=RefreshTokenSerializer, responses={204: None})
    def post(self, request: Request, **kwargs: str) -> Response:
        logins.log_out(self.read(request)["refresh_token"])
        return Response(status=204, headers=NO_STORE)
