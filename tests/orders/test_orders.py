"""Orders: what they look like, which values they take, and that they never change."""

from tests.conftest import TIME

BOOK = {"item": "Book", "qty": 2}


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
