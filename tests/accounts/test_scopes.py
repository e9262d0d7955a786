"""What a scope does not say; which endpoint asks for which is tests/contract/matrix.py."""

from config.api.principal import SCOPES
from orders.models import Order
from tests.conftest import with_key


def test_scope_of_reading_says_nothing_about_what_is_hidden(user, other):
    order = Order.objects.create(user=other.user, item="Book", qty=1)
    limited = with_key(user.user, {"users:read"})
    for path in (f"/orders/{order.pk}", "/orders/999999999"):
        assert limited.get(path).code == "INSUFFICIENT_SCOPE"
        assert user.get(path).code == "NOT_FOUND"


def test_scopes_never_exceed_the_role(user, other):
    assert with_key(user.user, SCOPES).get(f"/users/{other.user.pk}").status == 404
    assert with_key(user.user, SCOPES).post("/users", {"name": "New", "email": "new@example.com"}).code == "FORBIDDEN"
