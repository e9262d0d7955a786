"""Orders: what they look like, which values they take, and that they never change."""

import re

import pytest

from orders.models import Order

BOOK = {"item": "Book", "qty": 2}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def test_order_has_exactly_the_fields_of_the_contract(user):
    created = user.post("/orders", BOOK)
    assert created.status == 201
    order = created.data
    path = f"/orders/{order['id']}"
    assert created.headers["Location"] == path
    assert TIME.fullmatch(order["created_at"])
    assert order == {
        "id": order["id"],
        "user_id": user.user.pk,
        "item": "Book",
        "qty": 2,
        "created_at": order["created_at"],
        "_links": {"self": {"href": path}, "user": {"href": f"/users/{user.user.pk}"}},
    }
    assert user.get(path).data == order
    del order["_links"]
    assert user.get("/orders").data == [order]
    assert user.get(f"/users/{user.user.pk}/orders").data == [order]


def test_every_creation_is_a_new_order(user):
    first, second = user.post("/orders", BOOK), user.post("/orders", BOOK)
    assert (first.status, second.status) == (201, 201)
    assert first.data["id"] < second.data["id"]
    assert user.get("/orders").meta["total"] == 2


def test_read_only_fields_in_a_body_are_ignored(user):
    order = user.post("/orders", {**BOOK, "id": 1_000_000, "created_at": "2001-01-01T00:00:00Z"})
    assert order.status == 201
    assert order.data["id"] != 1_000_000
    assert not order.data["created_at"].startswith("2001")


@pytest.mark.parametrize("qty", ["1", "1000000", "999999"])
def test_qty_within_bounds_is_taken(user, qty):
    created = user("POST", "/orders", raw=b'{"item": "Book", "qty": %s}' % qty.encode())
    assert created.status == 201
    assert (created.data["qty"], type(created.data["qty"])) == (int(qty), int)


@pytest.mark.parametrize(
    "qty",
    [
        "0",
        "-1",
        "1000001",
        "2147483648",
        "9223372036854775808",
        "1" * 41,
        "1" * 5000,
        "2.0",
        "2.5",
        "1e3",
        "1E0",
        "1e999999999",
        "1e-999999999",
        '"2"',
        '""',
        "true",
        "false",
        "null",
        "[2]",
        "{}",
    ],
)
def test_qty_of_another_type_or_out_of_bounds_is_refused(user, qty):
    refused = user("POST", "/orders", raw=b'{"item": "Book", "qty": %s}' % qty.encode())
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"qty"})
    assert not Order.objects.exists()


@pytest.mark.parametrize("qty", ["NaN", "Infinity", "-Infinity", "02", "+2", "2.", "0x2"])
def test_qty_that_is_no_json_is_malformed(user, qty):
    refused = user("POST", "/orders", raw=b'{"item": "Book", "qty": %s}' % qty.encode())
    assert (refused.status, refused.code) == (400, "MALFORMED_JSON")
    assert not Order.objects.exists()


@pytest.mark.parametrize("item", ["B", " Book ", "é" * 200, "\N{GRINNING FACE}" * 200])
def test_item_is_kept_as_sent(user, item):
    created = user.post("/orders", {"item": item, "qty": 1})
    assert created.status == 201
    assert user.get(f"/orders/{created.data['id']}").data["item"] == item


@pytest.mark.parametrize("item", ["", "  ", "i" * 201, "a\0b", "a\udfffb", "a\nb", None, 5, True, []])
def test_item_that_is_none_is_refused(user, item):
    refused = user.post("/orders", {"item": item, "qty": 1})
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"item"})
    assert not Order.objects.exists()


def test_missing_fields_are_told_at_once(user):
    refused = user.post("/orders", {"user_id": None})
    assert (refused.status, refused.fields) == (400, {"item", "qty", "user_id"})


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_order_never_changes(admin, method):
    order = admin.post("/orders", BOOK).data
    refused = admin(method, f"/orders/{order['id']}", {"item": "Other", "qty": 9})
    assert (refused.status, refused.code) == (405, "METHOD_NOT_ALLOWED")
    assert set(re.split(r",\s*", refused.headers["Allow"])) == {"GET", "HEAD", "OPTIONS"}
    assert admin.get(f"/orders/{order['id']}").data == order


@pytest.mark.parametrize("path", ["/orders", "/users/{id}/orders"])
def test_list_of_orders_has_no_method_of_an_item(admin, path):
    refused = admin.delete(path.format(id=admin.user.pk))
    assert refused.status == 405
    methods = {"GET", "HEAD", "OPTIONS"} | ({"POST"} if path == "/orders" else set())
    assert set(re.split(r",\s*", refused.headers["Allow"])) == methods


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1"])
def test_links_and_location_keep_the_prefix(user, prefix):
    created = user.post(f"{prefix}/orders", BOOK)
    path = f"{prefix}/orders/{created.data['id']}"
    assert created.headers["Location"] == path
    assert user.get(path).data["_links"] == created.data["_links"]
    assert created.data["_links"] == {
        "self": {"href": path},
        "user": {"href": f"{prefix}/users/{user.user.pk}"},
    }
