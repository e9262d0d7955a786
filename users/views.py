from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request

from config.api.limits.login_attempts import guess
from config.api.principal import Principal
from config.api.representation.links import Link
from config.api.viewsets import ResourceViewSet
from config.fastpath.responses import Response
from config.http.errors import ErrorCode
from users import services
from users.filters import UserFilterSet
from users.models import User
from users.permissions import UserPermission
from users.serializers import UserSerializer


class UserViewSet(ResourceViewSet):
    """The users that the caller may see."""

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

    def perform_destroy(self, instance: User) -> None:
        services.remove(instance)

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Around the transaction of the write, so that a wrong `current_password` counts although it is rolled back."""
        user = self.principal.user
        own = self.kwargs["id"] == str(user.pk) and "current_password" in request.data
        door: AbstractContextManager[list[bool]] = nullcontext([])
        if own:
            door = guess(request, user.email, user=user, door="current_password")
        with door as self.looks_at_password:
            return super().update(request, *args, **kwargs)

    partial_update = update

    def get_serializer_context(self) -> dict[str, Any]:
        return super().get_serializer_context() | {"looks_at_password": getattr(self, "looks_at_password", [])}


class OfCaller:
    """A collection of rows that are the caller's unless an administrator names another user."""

    def is_plain_addition(self, data: Any) -> bool:
        return isinstance(data, dict) and "user_id" not in data


class OfVisibleUser:
    """A collection below a user whom the caller may read."""

    principal: Principal
    parent_field: ClassVar[str | None] = "user_id"

    def parents(self) -> QuerySet[User]:
        return User.objects.visible_to(self.principal)
