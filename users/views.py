from typing import ClassVar

from django.db.models import QuerySet

from config.api.links import Link
from config.api.principal import Principal
from config.api.viewsets import ResourceViewSet
from users import services
from users.filters import UserFilterSet
from users.models import Role, Status, User
from users.permissions import UserPermission
from users.serializers import UserSerializer


class UserViewSet(ResourceViewSet):
    """The users that the caller may see."""

    queryset = User.objects.all()
    serializer_class = UserSerializer
    permission_classes = [UserPermission]
    filterset_class = UserFilterSet
    scope = "users"
    sortable = ("id", "name", "email", "created_at", "updated_at")
    partitions = {"role": Role.values, "status": Status.values}
    sorted_whole = ("id", "name", "email", "created_at")
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


class OfVisibleUser:
    """A collection below a user whom the caller may read."""

    principal: Principal
    parent_field: ClassVar[str | None] = "user_id"

    def parents(self) -> QuerySet[User]:
        return User.objects.visible_to(self.principal)
