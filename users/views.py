from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.models import BooleanField, Model, QuerySet
from django.db.models.expressions import RawSQL
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from config import audit
from config.api.bulk import BulkMixin
from config.api.limits.login_attempts import login_attempt
from config.api.permissions import PasswordPermission
from config.api.representation.envelope import Link
from config.api.representation.renderers import NDJSONRenderer
from config.api.streams import open_snapshot, respond
from config.api.views import View
from config.api.viewsets import ResourceViewSet, parse_id
from config.http.errors import ErrorCode, forbidden, not_found
from config.http.lanes import Lane
from config.http.media_types import NDJSON
from config.postgresql.transactions import run_in_transaction
from users import messages, services
from users.archive import read_archive
from users.filters import UserFilterSet
from users.links import Purpose
from users.models import User
from users.permissions import UserPermission, is_self_or_administrator
from users.serializers import ArchiveLineSerializer, MessageSerializer, UserSerializer


class UserViewSet(BulkMixin, ResourceViewSet):
    """The users that the caller may see."""

    texts = {
        "create": "Creates a new user.\n\n"
        "Requires a credential of an administrator; for a role other than `user`, a password-based one: JWT, Basic or "
        "session. Exception: if the operator has enabled open sign-up, anyone can create a user of role `user` with "
        "a JSON request and without a credential. A user without a password can be invited to set one.\n\n"
        "From version 2 on, send NDJSON to create up to 1,000 users at once. At most 20 lines can have a `password`. "
        "`Idempotency-Key` is used only with NDJSON. A repeated JSON request returns 409, as the email address is then "
        "taken.",
        "update": "Replaces the user.\n\n"
        "If you are an administrator, an omitted `role` is reset to `user`, and an omitted `status` to `active`. An "
        "omitted `password` or `external_id` is kept. To change only some fields, use PATCH. Changing a password and "
        "assigning a role other than `user` require a password-based credential: JWT, Basic or session. Returns "
        "409 if another user has the email address or `external_id`, or if no active administrator would be left. To "
        "avoid overwriting someone else's change, send `If-Match`.",
        "partial_update": "Updates the fields that you send.\n\n"
        "The body is a merge patch (RFC 7396): null resets an optional field to its default. Changing a password and "
        "assigning a role other than `user` require a password-based credential: JWT, Basic or session. Returns "
        "409 if another user has the email address or `external_id`, or if no active administrator would be left. To "
        "avoid overwriting someone else's change, send `If-Match`.",
        "destroy": "Deletes the user permanently.\n\n"
        "Name, email address, password, posts and comments are erased, and all credentials are revoked. Orders and "
        "payments are kept for accounting, identified only by user ID. Returns 409 for the last active administrator. "
        "Repeating the request returns 404.",
    }
    queryset = User.objects.all()
    serializer_class = UserSerializer
    permission_classes = [UserPermission]
    filterset_class = UserFilterSet
    scope = "users"
    # An email that is taken, and the last active administrator.
    own_errors = dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), (ErrorCode.CONFLICT,))
    sortable = ("id", "name", "email", "created_at", "updated_at")
    links = (
        Link("self", "/users/{0.id}", "users:read"),
        Link("orders", "/users/{0.id}/orders", "orders:read"),
        Link("posts", "/users/{0.id}/posts", "posts:read"),
        Link("payments", "/users/{0.id}/payments", "payments:read"),
        Link("update", "/users/{0.id}", "users:write", "PUT", UserPermission.may_change),
        Link("delete", "/users/{0.id}", "users:write", "DELETE", UserPermission.may_change),
    )

    password_checks: list[bool]
    """The results of the checks of `current_password` by the serializer."""

    def perform_destroy(self, instance: User) -> None:
        services.remove(instance)

    def update(self, request: Request, *args: object, **kwargs: object) -> Response:
        user = self.principal.user
        attempt: AbstractContextManager[list[bool]] = nullcontext([])
        if self.kwargs["id"] == str(user.pk) and "current_password" in request.data:
            # Around the transaction of the write, so that a wrong `current_password` counts although it is rolled back.
            (account,) = User.objects.all().fold_emails(user.email)
            attempt = login_attempt(request, account, user=user, door="current_password")
        with attempt as self.password_checks:
            return super().update(request, *args, **kwargs)

    partial_update = update


class MessageView(View):
    """Sends a message with a link. Without a mail server there is no such endpoint.

    Attributes:
        purpose: of the link.
    """

    lanes = {"POST": Lane.SLOW}
    purpose: ClassVar[Purpose]

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        if not settings.SENDS_MAIL:
            raise not_found()
        super().initial(request, *args, **kwargs)

    def respond(self) -> Response:
        return self.success({"expires_in": int(self.purpose.lifetime.total_seconds())}, 202)


class UserMessageView(MessageView):
    """Sends a message to one user."""

    # The rule of who may is that of one row: what the caller does not see is 404.
    own_errors = {"POST": (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT)}

    def required_scope(self, method: str) -> str:
        return "users:write"

    @extend_schema(request=None, responses={202: MessageSerializer})
    def post(self, request: Request, user_id: str, **kwargs: str) -> Response:
        self.read(request)
        user = get_object_or_404(User.objects.visible_to(self.principal), pk=parse_id(user_id))
        self.ask(user)
        return self.respond()

    def ask(self, user: User) -> None:
        """Sends the message, or raises DomainError."""
        raise NotImplementedError


class UserEmailVerificationView(UserMessageView):
    texts = {
        "post": "Send a verification email.\n\n"
        "Sends a link to the user's email address. Users can send it to themselves, administrators to anyone. The link "
        "expires after seven days. Returns 409 if the email address is already verified or the user is inactive. "
        "Returns 404 if the operator has not configured a mail server."
    }
    purpose = Purpose.EMAIL_VERIFICATION

    def ask(self, user: User) -> None:
        if not is_self_or_administrator(self.principal, user.pk):
            raise forbidden("Only the user or an administrator can send this email.")
        if not self.principal.user.is_administrator:
            # An email that one has given oneself may be another person's.
            messages.count(self.request, user.email)
        run_in_transaction(lambda: messages.ask_for_verification(user))


class UserInvitationView(UserMessageView):
    texts = {
        "post": "Send an invitation.\n\n"
        "Sends a user who has no password a link to set one. Only administrators can send it. The link expires after "
        "seven days. Returns 409 if the user has a password or is inactive. If the email address was last changed with "
        "an API key or OAuth token, only a password-based credential (JWT, Basic or session) can send the "
        "invitation. Returns 404 if the operator has not configured a mail server."
    }
    purpose = Purpose.INVITATION

    def ask(self, user: User) -> None:
        if not self.principal.user.is_administrator:
            raise forbidden("Only administrators can invite users.")
        if not (user.email_is_trusted or self.principal.made_from_password):
            reason = "An API key or OAuth token changed this email. Use a password-based credential: JWT or Basic."
            raise forbidden(reason, "email")
        run_in_transaction(lambda: messages.invite(user))


# Compiled in no time, which a queryset is not.
_IS_PRESENT = "EXISTS (SELECT 1 FROM users_user WHERE id = %s AND removed_at IS NULL)"


class NestedUnderUserMixin(ResourceViewSet):
    """A collection below a user whom the caller may read. Its rows are created elsewhere."""

    http_method_names = ["get", "head", "options"]
    parent_field = "user_id"

    def get_parents(self) -> QuerySet[User]:
        return User.objects.visible_to(self.principal)

    def get_queryset(self) -> QuerySet[Model]:
        # The rows outlive their user. PostgreSQL evaluates the condition, which is on none of them, once.
        return super().get_queryset().filter(RawSQL(_IS_PRESENT, [self.parent_id], BooleanField()))  # noqa: S611


class ArchiveView(View):
    """Everything that belongs to a user."""

    texts = {
        "get": "Download user archive.\n\n"
        "Streams everything that the service stores about a user, as NDJSON: each line has the `kind` (such as `user`, "
        "`order` or `session`) and the `data` of one record. All records are from one point in time and contain no "
        "secrets. You can download your own archive; administrators can download the archive of any user. Requires a "
        "password-based credential: JWT, Basic or session."
    }
    permission_classes = [PasswordPermission]
    cache_control = "no-store"
    envelope_known = False
    lanes = {"GET": Lane.SLOW}
    streams = True
    own_errors = {"GET": (ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND)}

    @extend_schema(responses={(200, NDJSON): ArchiveLineSerializer})
    def get(self, request: Request, user_id: str, **kwargs: str) -> HttpResponseBase:
        user = get_object_or_404(User.objects.visible_to(self.principal), pk=parse_id(user_id))
        if not is_self_or_administrator(self.principal, user.pk):
            raise forbidden("Only the user or an administrator can download this archive.")
        headers = {
            "Content-Type": NDJSON,
            "Content-Disposition": f'attachment; filename="user-{user.pk}.ndjson"',
            "Cache-Control": self.cache_control,
        }
        audit.record("archive.exported", user=user, by=self.principal.user)
        return respond(request, self._read(user.pk), headers)

    def _read(self, user_id: int) -> Generator[bytes]:
        renderer = NDJSONRenderer()
        with open_snapshot(self.principal.user.pk, DEFAULT_DB_ALIAS):
            for rows in read_archive(user_id, DEFAULT_DB_ALIAS):
                yield renderer.render_rows(rows)
