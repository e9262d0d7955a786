"""What a scope does not say; which endpoint asks for which is tests/contract/matrix.py."""

from orders.models import Order
from tests.conftest import with_key


def test_scope_of_reading_says_nothing_about_what_is_hidden(user, other):
    order = Order.objects.create(user=other.user, item="Book", qty=1)
    limited = with_key(user.user, {"users:read"})
    for path in (f"/orders/{order.pk}", "/orders/999999999"):
        assert limited.get(path).code == "INSUFFICIENT_SCOPE"
        assert user.get(path).code == "NOT_FOUND"
