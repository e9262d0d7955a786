from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.bulk import BulkMixin
from config.api.limits.login_attempts import login_attempt
from config.api.principal import Principal
from config.api.representation.envelope import Link
from config.api.viewsets import ResourceViewSet
from config.http.errors import ErrorCode
from users import services
from users.filters import UserFilterSet
from users.models import User
from users.permissions import UserPermission
from users.serializers import UserSerializer


class UserViewSet(BulkMixin, ResourceViewSet):
    """The users that the caller may see."""

    texts = {
        "create": "Creates a new user.\n\n"
        "Administrators can create users of any role. If open sign-up is enabled, anyone can create a user of role "
        "`user`.",
        "update": "Replaces the user.\n\n"
        "Omitted fields are reset to their defaults, except the password. "
        "To change your own password, also send `current_password`.",
        "destroy": "Deletes the user permanently.\n\n"
        "Name, email, password, posts and comments are erased, and all credentials are revoked. Orders and payments "
        "are kept for accounting, identified only by user ID. Repeating the request returns 404.",
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


class NestedUnderUserMixin:
    """A collection below a user whom the caller may read."""

    principal: Principal
    parent_field: ClassVar[str | None] = "user_id"

    def get_parents(self) -> QuerySet[User]:
        return User.objects.visible_to(self.principal)
