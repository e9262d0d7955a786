from config.api.representation.envelope import Link
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import KeyPolicy
from payments.models import Payment
from payments.serializers import PaymentSerializer
from users.permissions import may_read_owner
from users.views import NestedUnderUserMixin


class PaymentViewSet(ResourceViewSet):
    """The payments that the caller may see. They are created and never change."""

    texts = {"create": "Creates a new payment.\n\nA retry with the same `Idempotency-Key` creates no second payment."}
    queryset = Payment.objects.all()
    serializer_class = PaymentSerializer
    scope = "payments"
    idempotency = KeyPolicy.REQUIRED
    sortable = ("id", "amount", "created_at")
    http_method_names = ["get", "post", "head", "options"]
    links = (
        Link("self", "/payments/{0.id}", "payments:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, select_related="user"),
    )


class UserPaymentViewSet(NestedUnderUserMixin, PaymentViewSet):
    """The payments of one user."""
