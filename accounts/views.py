from datetime import timedelta
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import logins, passwords, services, sessions
from accounts.models import APIKey
from accounts.permissions import APIKeyPermission
from accounts.serializers import (
    APIKeySerializer,
    EmailSerializer,
    LoginSerializer,
    PasswordSerializer,
    ProtectedSerializer,
    RefreshTokenSerializer,
    RotationSerializer,
    SessionSerializer,
    TokenPairSerializer,
)
from accounts.tokens import AccessToken, Pair
from config.api.permissions import PasswordPermission, PublicPermission
from config.api.principal import AUDIT_SCOPE, lock_credentials
from config.api.representation.envelope import Link
from config.api.schema.fields import build_string
from config.api.schema.parameters import build_parameter
from config.api.views import View
from config.api.viewsets import ResourceViewSet, parse_id
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import Detail, ErrorCode, forbidden, invalid, not_found
from config.http.lanes import Lane
from users import messages
from users.links import Purpose
from users.models import User
from users.serializers import MessageSerializer
from users.views import MessageView

# Under what the reference lists the endpoints of tokens.
SIGN_IN = "sign-in"


class ProtectedView(View):
    """The caller as the service identifies it, and what the credential allows."""

    texts = {
        "get": "Read the current user.\n\n"
        "Returns the user behind your credential, and the credential's kind, expiry and scopes."
    }

    @extend_schema(responses=ProtectedSerializer, tags=[SIGN_IN])
    def get(self, request: Request, **kwargs: str) -> Response:
        principal = request.auth
        shown = {"user": principal.user, "credential": principal, "scopes": sorted(principal.scopes)}
        return self.success(ProtectedSerializer(shown).data)


class SessionsView(View):
    """Where the caller is signed in."""

    texts = {
        "get": "List sessions.\n\n"
        "Returns your latest 100 logins (`kind` is `jwt`) and your latest 100 browser sessions (`session`). "
        "`last_used_at` of a login is the time of the latest refresh or, if later, of the first use of the newest "
        "access token. `last_used_at` of a browser session is updated at most once a minute. Requires a password-based "
        "credential: JWT, Basic or session."
    }
    permission_classes = [PasswordPermission]
    cache_control = "no-store"
    own_errors = {"GET": (ErrorCode.FORBIDDEN,)}

    @extend_schema(responses=SessionSerializer(many=True))
    def get(self, request: Request, **kwargs: str) -> Response:
        return self.success(SessionSerializer(sessions.fetch_sessions(request.auth.user), many=True).data)


class SessionView(View):
    """One of these sign-ins."""

    texts = {
        "delete": "End session.\n\nThe session and its tokens stop working from the next request on. Requires a "
        "password-based credential: JWT, Basic or session."
    }
    permission_classes = [PasswordPermission]
    own_errors = {"DELETE": (ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND)}
    own_parameters = (
        build_parameter(
            "id",
            build_string(36, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", format="uuid"),
            "The `id` of the session, from `GET /sessions`.",
            "path",
            required=True,
        ),
    )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, id: str, **kwargs: str) -> Response:  # noqa: A002 - the name in the address
        sessions.end_session(request.auth.user, id)
        return Response(status=204)


class TokenView(View):
    """An endpoint whose body is the credential: any other one of the request is not looked at."""

    permission_classes = [PublicPermission]
    cache_control = "no-store"
    # Log-ins hash, and all of them write more than once.
    lanes = {"POST": Lane.SLOW}
    authentication_classes: ClassVar[list[type]] = []

    def answer(self, pair: Pair) -> Response:
        data = {
            "access_token": str(pair.access),
            "refresh_token": str(pair.refresh),
            "token_type": "Bearer",
            "expires_in": int(AccessToken.lifetime.total_seconds()),
        }
        return self.success(data)


class LoginView(TokenView):
    """Exchanges email and password for a pair of tokens."""

    texts = {
        "post": "Log in.\n\n"
        "Starts a session: exchanges email address and password for an access token and a refresh token. Send the "
        "access token as `Authorization: Bearer`; it is valid for 15 minutes. The refresh token is valid for 14 days "
        "and can be used once, at `/token/refresh`. Returns 403 with the field `email` in `details` if the operator "
        "requires verified email addresses and this one is not verified."
    }

    serializer_class = LoginSerializer
    # An email that must be verified first.
    own_errors = {"POST": (ErrorCode.INVALID_CREDENTIALS, ErrorCode.FORBIDDEN)}

    @extend_schema(request=LoginSerializer, responses=TokenPairSerializer, tags=[SIGN_IN])
    def post(self, request: Request, **kwargs: str) -> Response:
        given = self.read(request)
        return self.answer(logins.log_in(passwords.prove(request, **given, door="login")))


class RefreshView(TokenView):
    """Exchanges a refresh token, which can be used once, for a new pair."""

    texts = {
        "post": "Refresh tokens.\n\n"
        "Exchanges a refresh token for a new access token and a new refresh token. Use each refresh token once: a "
        "second use returns 401 and ends the session. Exception: if the second use comes within ten seconds and before "
        "the new tokens are used (such as from two tabs at once), it returns 401, but the session continues."
    }
    serializer_class = RefreshTokenSerializer
    own_errors = {"POST": (ErrorCode.INVALID_TOKEN,)}

    @extend_schema(request=RefreshTokenSerializer, responses=TokenPairSerializer, tags=[SIGN_IN])
    def post(self, request: Request, **kwargs: str) -> Response:
        return self.answer(logins.refresh(self.read(request)["refresh_token"]))


class LogoutView(TokenView):
    """Ends the session of a refresh token, access tokens too."""

    texts = {
        "post": "Log out.\n\n"
        "Ends the session of a refresh token: all its tokens are revoked immediately. Accepts any refresh token of the "
        "session, even a used or expired one. Returns 400 for an access token or the token of an OAuth application, "
        "which cannot end a session."
    }
    serializer_class = RefreshTokenSerializer

    @extend_schema(request=RefreshTokenSerializer, responses={204: None}, tags=[SIGN_IN])
    def post(self, request: Request, **kwargs: str) -> Response:
        logins.log_out(self.read(request)["refresh_token"])
        return Response(status=204)


class PasswordResetRequestView(MessageView, TokenView):
    texts = {
        "post": "Request a password reset.\n\n"
        "Sends a link to the email address if an active user with a password has this address. No link is sent if the "
        "address was last changed with an API key or OAuth token. The response does not tell whether a link was sent. "
        "The link works once and expires after 30 minutes. Returns 404 if the operator has not configured a mail "
        "server."
    }
    purpose = Purpose.PASSWORD_RESET
    serializer_class = EmailSerializer
    own_errors = {"POST": (ErrorCode.NOT_FOUND,)}

    @extend_schema(request=EmailSerializer, responses={202: MessageSerializer}, tags=[SIGN_IN])
    def post(self, request: Request, **kwargs: str) -> Response:
        messages.ask_for_password_reset(request, **self.read(request))
        return self.respond()


class PasswordResetView(TokenView):
    """Uses the link of a reset or an invitation."""

    texts = {
        "post": "Set a new password.\n\n"
        "Takes the token from the link of a password reset or an invitation. Setting the password ends all sessions of "
        "the user, and the email address counts as verified. Returns 404 if the token has expired or was used."
    }
    serializer_class = PasswordSerializer
    own_errors = {"POST": (ErrorCode.NOT_FOUND,)}

    @extend_schema(
        operation_id="password_resets_use", request=PasswordSerializer, responses={204: None}, tags=[SIGN_IN]
    )
    def post(self, request: Request, token: str, **kwargs: str) -> Response:
        password = self.read(request)["password"]
        try:
            messages.set_password(token, password)
        except ValidationError as error:
            raise invalid(*(Detail("password", message) for message in error.messages)) from None
        return Response(status=204)


class EmailVerificationView(TokenView):
    texts = {
        "post": "Verify an email address.\n\n"
        "Takes the token from the link of a verification email. Returns 404 if the token has expired or was used."
    }
    own_errors = {"POST": (ErrorCode.NOT_FOUND,)}

    @extend_schema(operation_id="email_verifications_use", request=None, responses={204: None}, tags=[SIGN_IN])
    def post(self, request: Request, token: str, **kwargs: str) -> Response:
        self.read(request)
        messages.verify_email(token)
        return Response(status=204)


@extend_schema_view(destroy=extend_schema(summary="Revoke API key"))
class APIKeyViewSet(ResourceViewSet):
    """API keys: your own, and for administrators everybody's."""

    texts = {
        "list": "Returns a page of your API keys. Administrators get the keys of all users if they use a password-"
        "based credential: JWT, Basic or session.\n\n"
        "The response does not contain the keys themselves: the service does not store them.",
        "create": "Creates a new API key.\n\n"
        "Requires a password-based credential: JWT, Basic or session. Only this response contains the `key`: store "
        "it now. The `key` of a dry run does not work.",
        "destroy": "Revokes the API key.\n\n"
        "The key stops working from the next request on. Requires a password-based credential: JWT, Basic or "
        "session. Repeating the request returns 204 again.",
    }

    queryset = APIKey.objects.all()
    serializer_class = APIKeySerializer
    permission_classes = [APIKeyPermission]
    scope = None
    sortable = ("id", "name", "created_at")
    idempotency = KeyPolicy.REFUSED
    cache_control = "no-store"
    # The use of a key is written without a wait for the WAL: what the primary shows may be beyond the noted position.
    may_read_replica = False
    # The columns that change in the life of a key.
    version_columns = ("last_used_at", "expires_at", "revoked_at")
    http_method_names = ["get", "post", "delete", "head", "options"]
    # Somebody else's key, read with a credential that is not made from the password.
    own_errors = {"GET": (ErrorCode.FORBIDDEN,)}
    links = (
        Link("self", "/api-keys/{0.id}"),
        Link("delete", "/api-keys/{0.id}", method="DELETE", when=APIKeyPermission.may_change),
    )

    def get_queryset(self) -> QuerySet[APIKey]:
        rows: Any = super().get_queryset()
        # The list shows what the credential may read; a single key of somebody else is refused by name instead.
        own_only = self.action == "list" and not self.principal.made_from_password
        return rows.of(self.principal) if own_only else rows

    def lock_related(self) -> None:
        # The key's user, whom the audit event locks in the end: ending all of a user's credentials locks in this
        # order.
        key = self.get_queryset().filter(pk=parse_id(self.kwargs["id"])).first()
        if key is None or not User.objects.lock_key_share(key.user_id):
            raise not_found()

    def perform_create(self, serializer: APIKeySerializer) -> None:
        lock_credentials(self.principal.user)
        values = {"scopes": self.principal.scopes - {AUDIT_SCOPE}, **serializer.validated_data}
        # The response shows the key, this once.
        serializer.instance, serializer.instance.key = services.create_api_key(self.principal.user, **values)

    def perform_destroy(self, instance: APIKey) -> None:
        services.revoke_api_key(instance, by=self.principal.user)


@extend_schema(summary="Rotate API key")
class RotationViewSet(APIKeyViewSet):
    """The successors of a key, which are made here and read as keys."""

    texts = {
        "create": "Rotates the API key.\n\n"
        "Creates a new key with the same name, scopes and expiry. Only this response contains the new `key`: store it "
        "now. The `key` of a dry run does not work. The old key keeps working for `overlap_seconds`, but not beyond "
        "its own expiry. Only the owner can rotate a key, with a password-based credential: JWT, Basic or session. "
        "Returns 409 if the key is revoked, expired or already rotated."
    }

    serializer_class = RotationSerializer
    http_method_names = ["post", "options"]
    own_errors = {"POST": (ErrorCode.CONFLICT,)}

    def perform_create(self, serializer: RotationSerializer) -> None:
        lock_credentials(self.principal.user)
        key_id = parse_id(self.kwargs["api_key_id"])
        old = get_object_or_404(APIKey.objects.visible_to(self.principal).select_for_update(no_key=True), pk=key_id)
        if old.user_id != self.principal.user.pk:
            raise forbidden("Only its owner can rotate a key.")
        overlap = timedelta(seconds=serializer.validated_data["overlap_seconds"])
        serializer.instance, serializer.instance.key = services.rotate_api_key(old, overlap)
