from config.api.bulk import BulkMixin
from config.api.representation.envelope import Link
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import KeyPolicy
from orders.models import Order
from orders.serializers import OrderSerializer
from users.permissions import may_read_owner
from users.views import NestedUnderUserMixin


class OrderViewSet(BulkMixin, ResourceViewSet):
    """The orders that the caller may see. They are created and never change."""

    texts = {"create": "Creates a new order.\n\nTo retry safely, send an `Idempotency-Key`."}
    queryset = Order.objects.all()
    serializer_class = OrderSerializer
    scope = "orders"
    idempotency = KeyPolicy.HONOURED
    sortable = ("id", "item", "qty", "created_at")
    http_method_names = ["get", "post", "head", "options"]
    links = (
        Link("self", "/orders/{0.id}", "orders:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, select_related="user"),
    )


class UserOrderViewSet(NestedUnderUserMixin, OrderViewSet):
    """The orders of one user."""
