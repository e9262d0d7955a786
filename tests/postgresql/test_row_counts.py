"""Totals and pages are those of a plain count and a plain OFFSET, whatever was written, and by whichever door."""

from __future__ import annotations

from io import StringIO
from itertools import count, product
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.api.listing import keyset
from config.models import RowCount
from orders.models import Order
from payments.models import Payment
from posts.models import Post
from tests.conftest import find_wrong_counts
from users import services
from users.models import Role, Status, User

# Ids within a narrow block, around the ends of narrow and of wide blocks, and far beyond them.
IDS = st.one_of(
    st.integers(1_000, 1_100),
    *(st.integers(edge - 3, edge + 3) for edge in (2**11, 2**12, 2**18, 2**18 + 2**10, 2**19)),
    st.integers(10**6, 10**9),
)
NUMBERS = count()
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(IDS, max_size=30), st.sampled_from(list(product(Role, Status)))),
        st.tuples(st.just("delete"), IDS, IDS),
        st.tuples(st.just("remove"), IDS, IDS),
        st.tuples(st.just("role"), IDS, st.sampled_from(list(Role))),
        st.tuples(st.just("status"), IDS, st.sampled_from(list(Status))),
        st.tuples(st.just("move"), IDS, st.integers(2**31, 2**40)),
    ),
    max_size=8,
)
FILTERS = [
    {name: str(value) for name, value in zip(("role", "status"), pair, strict=True) if value}
    for pair in product([None, *Role.values], [None, *Status.values])
]


def write(step: tuple[str, Any, Any]) -> None:
    kind, first, second = step
    everybody = User._base_manager.exclude(email="admin1@example.com")
    present = everybody.filter(removed_at=None)
    match kind:
        case "insert":
            new = set(first) - set(User._base_manager.values_list("pk", flat=True))
            role, status = second
            User.objects.bulk_create(
                User(
                    pk=pk,
                    name=f"N{pk % 7}",
                    email=f"e{next(NUMBERS)}@example.com",
                    role=role,
                    status=status,
                    password="!",
                )
                for pk in new
            )
        case "delete":
            everybody.filter(pk__range=(first, second))._raw_delete(using="default")
        case "remove":
            for user in present.filter(pk__range=(first, second)).select_for_update():
                services.remove(user)
        case "role" | "status":
            present.filter(pk__lte=first).update(**{kind: second})
        case "move":
            taken = User._base_manager.filter(pk=second).exists()
            if not taken and (user := present.filter(pk__lte=first).last()):
                present.filter(pk=user.pk).update(id=second)


@pytest.fixture
def everywhere_far(monkeypatch):
    """Pages are found by the counts from the first on."""
    monkeypatch.setattr(keyset, "MAX_NEAR_OFFSET", 0)


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=STEPS,
    asked=st.tuples(
        st.sampled_from(FILTERS),
        st.sampled_from(["id", "id", "name", "updated_at"]),
        st.sampled_from(["asc", "desc"]),
        st.integers(1, 9),
    ),
    data=st.data(),
)
def test_any_page_is_that_of_a_plain_offset(admin, everywhere_far, steps, asked, data):
    filters, sort, order, limit = asked
    with transaction.atomic():
        for step in steps:
            write(step)
        assert find_wrong_counts() == []
        sign = "-" if order == "desc" else ""
        expected = list(
            User.objects.filter(**filters)
            .order_by(*dict.fromkeys((sign + sort, sign + "id")))
            .values_list("pk", flat=True)
        )
        query = "&".join(f"{name}={value}" for name, value in {**filters, "sort": sort, "order": order}.items())
        for offset in data.draw(st.lists(st.integers(0, len(expected) + limit), min_size=1, max_size=4)):
            answer = admin.get(f"/users?{query}&limit={limit}&offset={offset}")
            assert answer.meta["total"] == len(expected)
            assert [row["id"] for row in answer.data] == expected[offset : offset + limit]
        transaction.set_rollback(True)


def test_own_rows_and_an_email_are_counted_themselves(admin, other):
    Order.objects.bulk_create(Order(user=owner, item="x", qty=1) for owner in (admin.user, other.user, other.user))
    assert other.get("/orders").meta["total"] == 2
    assert other.get("/users?status=active").meta["total"] == 1
    assert admin.get(f"/users/{other.user.pk}/orders").meta["total"] == 2
    assert admin.get("/orders").meta["total"] == 3
    assert admin.get(f"/users?email={other.user.email}&role=user").meta["total"] == 1
    assert admin.get(f"/users?email={other.user.email}&role=admin").meta["total"] == 0


def test_every_door_of_the_api_is_counted(admin, other):
    def totals() -> list[int]:
        return [admin.get(path).meta["total"] for path in ("/users?status=active", "/orders", "/payments", "/posts")]

    assert totals() == [2, 0, 0, 0]
    made = admin.post("/users", {"name": "N", "email": "n@example.com"}).data["id"]
    admin.post("/orders", {"item": "x", "qty": 1, "user_id": made})
    admin.post("/payments", {"amount": 1, "user_id": made}, idempotency_key="k")
    post = admin.post(f"/users/{made}/posts", {"title": "T"}).data["id"]
    admin.post(f"/users/{other.user.pk}/posts", {"title": "T"})
    assert totals() == [3, 1, 1, 2]
    admin.patch(f"/users/{made}", {"status": "inactive"})
    admin.delete(f"/posts/{post}")
    assert totals() == [2, 1, 1, 1]
    admin.delete(f"/users/{other.user.pk}")
    assert totals() == [1, 1, 1, 0]
    assert find_wrong_counts() == []


def test_copy_and_a_write_that_is_rolled_back_are_counted(admin):
    with connection.cursor() as cursor:
        with cursor.copy("COPY orders_order (user_id, item, qty) FROM STDIN") as copy:
            for _ in range(2_500):
                copy.write_row((admin.user.pk, "x", 1))
        savepoint = transaction.savepoint()
        cursor.execute("DELETE FROM orders_order WHERE id % 2 = 0")
        assert admin.get("/orders").meta["total"] == 1_250
        transaction.savepoint_rollback(savepoint)
    assert admin.get("/orders").meta["total"] == 2_500
    assert find_wrong_counts() == []


@pytest.mark.django_db(transaction=True)
def test_truncate_leaves_nothing_counted(admin):
    Order.objects.bulk_create(Order(user=admin.user, item="x", qty=1) for _ in range(3))
    Post.objects.create(user=admin.user, title="T")
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE orders_order")
    assert (admin.get("/orders").meta["total"], admin.get("/posts").meta["total"]) == (0, 1)
    assert find_wrong_counts() == []


@pytest.mark.django_db
def test_recount_finds_and_mends_what_is_wrong(make_user):
    owner = make_user()
    Payment.objects.create(user=owner, amount=1)
    call_command("recount", "--check", stdout=StringIO())
    RowCount.objects.filter(relation="payments_payment").update(rows=5)
    with pytest.raises(CommandError):
        call_command("recount", "--check", stdout=StringIO())
    output = StringIO()
    call_command("recount", stdout=output)
    assert output.getvalue().startswith("payments_payment: 2 counts are wrong")
    assert find_wrong_counts() == []
    assert set(RowCount.objects.values_list("relation", flat=True)) == {"payments_payment", "users_user"}
