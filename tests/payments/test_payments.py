"""Payments: money is exact from the wire to the column and back."""

import re
import uuid

from tests.conftest import TIME


def pay(caller, amount, path="/payments"):
    """Posts a payment with an amount as it stands on the wire."""
    body = b'{"amount": %s}' % amount.encode()
    return caller("POST", path, raw=body, idempotency_key=str(uuid.uuid4()))


def amounts_in(answer):
    return re.findall(rb'"amount":\s*([^,}\]]+)', answer.response.content)


def test_payment_has_exactly_the_fields_of_the_contract(user):
    created = pay(user, "12.3")
    assert created.status == 201
    payment = created.data
    path = f"/payments/{payment['id']}"
    assert created.headers["Location"] == path
    assert TIME.fullmatch(payment["created_at"])
    assert payment == {
        "id": payment["id"],
        "user_id": user.user.pk,
        "amount": 12.3,
        "created_at": payment["created_at"],
        "_links": {"self": {"href": path}, "user": {"href": f"/users/{user.user.pk}"}},
    }
    assert user.get(path).data == payment
    del payment["_links"]
    assert user.get("/payments").data == [payment]
    assert user.get(f"/users/{user.user.pk}/payments").data == [payment]


def test_payments_sort_by_value(user):
    for amount in ("10", "9.5", "100", "9.49"):
        assert pay(user, amount).status == 201
    listed = user.get("/payments?sort=amount&order=desc")
    assert amounts_in(listed) == [b"100.00", b"10.00", b"9.50", b"9.49"]
