"""Payments: money is exact from the wire to the column and back."""

import re
import uuid
from decimal import Decimal

import pytest

from payments.models import Payment

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


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


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("0.01", "0.01"),
        ("1", "1.00"),
        ("12.3", "12.30"),
        ("0.07", "0.07"),
        ("1.15", "1.15"),
        ("1e2", "100.00"),
        ("1E+2", "100.00"),
        ("1e-2", "0.01"),
        ("1.5e1", "15.00"),
        ("999999999.99e1", "9999999999.90"),
        ("9007199254.93", "9007199254.93"),
        ("9999999999.99", "9999999999.99"),
        ("9999999999.98", "9999999999.98"),
        ("8589934592.01", "8589934592.01"),
    ],
)
def test_amount_is_exact_in_the_column_and_in_every_answer(user, sent, kept):
    created = pay(user, sent)
    assert created.status == 201, created
    assert amounts_in(created) == [kept.encode()]
    assert Payment.objects.get().amount == Decimal(kept)
    path = f"/payments/{created.data['id']}"
    for address in (path, f"{path}?envelope=false", "/payments", f"/users/{user.user.pk}/payments"):
        assert amounts_in(user.get(address)) == [kept.encode()], address


@pytest.mark.parametrize(
    "amount",
    [
        "0",
        "0.00",
        "-0",
        "-1",
        "-0.01",
        "0.001",
        "0.009",
        "0.015",
        "1e-3",
        "1.234",
        "10.10000000000000000001",
        "9999999999.990000000000000000001",
        "9999999999.991",
        "9999999999.995",
        "10000000000",
        "90071992547409.93",
        "1e10",
        "1e20",
        "1e21",
        "1e-20",
        "1e999999999",
        "1e-999999999",
        "0e999999999",
        "1" * 41,
        "1." + "0" * 40,
        "1" * 5000,
        '"5"',
        '"5.00"',
        '""',
        "true",
        "false",
        "null",
        "[5]",
        '{"value": 5}',
    ],
)
def test_amount_that_is_none_is_refused(user, amount):
    refused = pay(user, amount)
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"amount"})
    assert not Payment.objects.exists()


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", "+1", "01", "1.", ".5", "1,5", "0x1", "1e", "1_0"])
def test_amount_that_is_no_json_is_malformed(user, amount):
    refused = pay(user, amount)
    assert (refused.status, refused.code) == (400, "MALFORMED_JSON")
    assert not Payment.objects.exists()


def test_missing_amount_is_refused(user):
    refused = user.post("/payments", {}, idempotency_key="k")
    assert (refused.status, refused.fields) == (400, {"amount"})


def test_payments_sort_by_value(user):
    for amount in ("10", "9.5", "100", "9.49"):
        assert pay(user, amount).status == 201
    listed = user.get("/payments?sort=amount&order=desc")
    assert amounts_in(listed) == [b"100.00", b"10.00", b"9.50", b"9.49"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_payment_never_changes(admin, method):
    payment = pay(admin, "5").data
    refused = admin(method, f"/payments/{payment['id']}", {"amount": 6})
    assert (refused.status, refused.code) == (405, "METHOD_NOT_ALLOWED")
    assert set(re.split(r",\s*", refused.headers["Allow"])) == {"GET", "HEAD", "OPTIONS"}
    assert admin.get(f"/payments/{payment['id']}").data == payment


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1"])
def test_links_and_location_keep_the_prefix(user, prefix):
    created = pay(user, "5", f"{prefix}/payments")
    path = f"{prefix}/payments/{created.data['id']}"
    assert created.headers["Location"] == path
    assert user.get(path).data["_links"] == {
        "self": {"href": path},
        "user": {"href": f"{prefix}/users/{user.user.pk}"},
    }
