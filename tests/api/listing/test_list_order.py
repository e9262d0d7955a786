"""The order of every list, and its cursor walk, against Python's own sorting by code point."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import APIKey
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import Caller, with_key
from tests.contract.world import rolled_back
from users import services
from users.models import User

TEXTS = [
    *("b", "B", "a", "Z", "_", " a", "10", "9", "é", "e\u0301", "É", "ß", "ss", "я", "Ж", "ω", "漢", "ｚ", "\uffee"),
    *("😀", "a", "é"),
]
TEXTS += ["𝒜", "a-b", "ab", "a b", "İ", "i", "ı", "مرحبا", "zz" * 50, "😀" * 100]
START = datetime(2026, 1, 1, tzinfo=UTC)
# Of differing precision, out of order, and with ties.
TIMES = [START + timedelta(microseconds=step) for step in (5, 0, 1, 1_000_000, 5, 999_999, 10, 1_000_001)]
AMOUNTS = [Decimal(text) for text in ("9.00", "10.00", "0.01", "9999999999.99", "9.00", "100.10", "9.01", "2.00")]


def fill() -> tuple[Caller, dict[str, str]]:
    """Fills every list. Returns who sees all of them, and their addresses by name."""
    admin, owner = (
        services.create(name=role, email=f"{role}@example.com", role=role, password=None) for role in ("admin", "user")
    )
    User.objects.bulk_create(
        User(name=text, email=f"{text[:20].replace(' ', '_')}@{number}.example", password="!")
        for number, text in enumerate(TEXTS)
    )
    Order.objects.bulk_create(
        Order(user=owner, item=text, qty=len(text) % 3 + 1 if number % 4 else 1_000_000)
        for number, text in enumerate(TEXTS)
    )
    Payment.objects.bulk_create(Payment(user=owner, amount=amount) for amount in AMOUNTS)
    posts = Post.objects.bulk_create(Post(user=owner, title=text) for text in TEXTS)
    Comment.objects.bulk_create(Comment(user=owner, post=posts[0], text=text) for text in TEXTS)
    APIKey.objects.bulk_create(
        APIKey(
            user=admin,
            name=text,
            prefix="urs_",
            digest=text.encode()[:32] + bytes([number]),
            scopes=["users:read"],
        )
        for number, text in enumerate(TEXTS)
    )
    for model, columns in (
        (APIKey, ("created_at",)),
        (User, ("created_at", "updated_at")),
        (Order, ("created_at",)),
        (Payment, ("created_at",)),
        (Post, ("created_at", "updated_at")),
        (Comment, ("created_at", "updated_at")),
    ):
        rows = list(model.objects.order_by("id"))
        for number, row in enumerate(rows):
            for offset, column in enumerate(columns):
                setattr(row, column, TIMES[(number + 3 * offset) % len(TIMES)])
        model.objects.bulk_update(rows, columns)
    return with_key(admin), {
        "users": "/users",
        "orders": "/orders",
        "payments": "/payments",
        "posts": "/posts",
        "comments": f"/posts/{posts[0].pk}/comments",
        "orders of a user": f"/users/{owner.pk}/orders",
        "payments of a user": f"/users/{owner.pk}/payments",
        "posts of a user": f"/users/{owner.pk}/posts",
        "API keys": "/api-keys",
    }


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[Caller, dict[str, str]]]:
    with django_db_blocker.unblock(), rolled_back():
        yield fill()


SORTS = [
    (name, field)
    for name, fields in {
        "users": "id name email created_at updated_at",
        "orders": "id item qty created_at",
        "payments": "id amount created_at",
        "posts": "id title created_at updated_at",
        "comments": "id created_at updated_at",
        "orders of a user": "id item qty created_at",
        "API keys": "id name created_at",
    }.items()
    for field in fields.split()
]


def sort_key(field: str):
    def key(item: dict[str, Any]) -> tuple[Any, int]:
        value = item[field]
        # Sent with as many decimals as it needs, so its text does not sort.
        return (datetime.fromisoformat(value) if field.endswith("_at") else value), item["id"]

    return key


@pytest.mark.django_db
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(("name", "field"), SORTS)
def test_list_stands_in_code_point_order_with_ids_breaking_ties(
    filled: tuple[Caller, dict[str, str]], name: str, field: str, order: str
) -> None:
    admin, lists = filled
    query = f"{lists[name]}?sort={field}&order={order}&limit=100"
    whole = admin.get(query)
    assert whole.meta["total"] == len(whole.data) >= len(AMOUNTS)
    assert whole.data == sorted(whole.data, key=sort_key(field), reverse=order == "desc")

    ids = [item["id"] for item in whole.data]
    # Of three pages the middle one has neighbours on both sides.
    limit = len(ids) // 3 + 1
    pages = f"{lists[name]}?sort={field}&order={order}&limit={limit}"
    by_page = [admin.get(f"{pages}&page={page}").data for page in range(1, 4)]
    assert [item["id"] for page in by_page for item in page] == ids

    address, forward, prev = f"{pages}&cursor=", [], None
    while address:
        answer = admin.get(address)
        forward += [item["id"] for item in answer.data]
        assert answer.meta["hasMore"] is (len(forward) < len(ids))
        address = answer.body["_links"].get("next", {}).get("href")
        prev = answer.body["_links"].get("prev", {}).get("href")
    assert forward == ids

    backward: list[int] = []
    while prev:
        answer = admin.get(prev)
        backward[:0] = [item["id"] for item in answer.data]
        assert answer.meta["hasMore"] is True
        prev = answer.body["_links"].get("prev", {}).get("href")
    assert backward == ids[: len(backward)]
    assert len(backward) == 2 * limit


@pytest.mark.django_db
def test_default_order_is_by_id_ascending(filled: tuple[Caller, dict[str, str]]) -> None:
    admin, lists = filled
    for address in lists.values():
        ids = [item["id"] for item in admin.get(f"{address}?limit=100").data]
        assert ids == sorted(ids)
        assert [item["id"] for item in admin.get(f"{address}?limit=100&order=desc").data] == ids[::-1]


@pytest.mark.django_db
def test_times_keep_their_microseconds_through_a_cursor(filled: tuple[Caller, dict[str, str]]) -> None:
    admin, _ = filled
    first = admin.get("/orders?sort=created_at&limit=1&cursor=")
    second = admin.get(f"/orders?sort=created_at&limit=1&cursor={first.meta['nextCursor']}")
    assert first.data[0]["created_at"] == second.data[0]["created_at"]
    assert first.data[0]["id"] < second.data[0]["id"]
