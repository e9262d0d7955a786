"""A walk by cursor returns each row that is left alone exactly once, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orders.models import Order
from tests.conftest import Caller
from users.models import User


def walk(caller: Caller, path: str, *, relation: str = "next") -> Iterator[list[dict[str, Any]]]:
    """The pages from an address on, along one link relation."""
    while path:
        answer = caller.get(path)
        assert answer.status == 200, answer
        yield answer.data
        path = answer.body["_links"].get(relation, {}).get("href", "")


def last_page(caller: Caller, path: str) -> str:
    """The address of the last page of a walk."""
    while True:
        following = caller.get(path).body["_links"].get("next")
        if following is None:
            return path
        path = following["href"]


class Ledger:
    """A list of orders that the test changes between pages, and what a walk over it owes."""

    def __init__(self, owner: User, quantities: list[int]) -> None:
        self.owner = owner
        Order.objects.all().delete()
        Order.objects.bulk_create(Order(user=owner, item="x", qty=qty) for qty in quantities)
        self.untouched = set(Order.objects.values_list("pk", flat=True))

    def change(self, step: tuple[str, int]) -> None:
        kind, number = step
        if kind == "insert":
            Order.objects.create(user=self.owner, item="new", qty=number % 3 + 1)
            return
        rows = list(Order.objects.order_by("qty", "id").values_list("pk", flat=True))
        if rows:
            gone = rows[number % len(rows)]
            Order.objects.filter(pk=gone).delete()
            self.untouched.discard(gone)


STEPS = st.lists(st.tuples(st.sampled_from(["insert", "delete"]), st.integers(0, 50)), max_size=4)


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    quantities=st.lists(st.integers(1, 3), max_size=25),
    limit=st.integers(1, 7),
    order=st.sampled_from(["asc", "desc"]),
    changes=st.lists(STEPS, max_size=12),
)
def test_a_walk_under_change_returns_untouched_rows_once(admin, quantities, limit, order, changes):
    for relation in ("next", "prev"):
        ledger = Ledger(admin.user, quantities)
        path = f"/orders?sort=qty&order={order}&limit={limit}&cursor="
        if relation == "prev":
            path = last_page(admin, path)
        seen: list[int] = []
        steps = iter(changes)
        for page in walk(admin, path, relation=relation):
            seen += [row["id"] for row in page]
            keys = [(row["qty"], row["id"]) for row in page]
            assert keys == sorted(keys, reverse=order == "desc")
            for step in next(steps, []):
                ledger.change(step)
        assert len(seen) == len(set(seen))
        # A backward walk starts at its last page, which may have lost its rows before it was read.
        assert ledger.untouched <= set(seen)


def test_the_page_before_an_emptied_one_holds_the_row_the_cursor_stands_on(admin):
    ids = [Order.objects.create(user=admin.user, item="x", qty=1).pk for _ in range(3)]
    following = admin.get("/orders?cursor=&limit=2").body["_links"]["next"]["href"]
    Order.objects.filter(pk=ids[2]).delete()
    empty = admin.get(following)
    assert (empty.data, empty.meta["hasMore"], empty.meta["nextCursor"]) == ([], False, None)
    back = admin.get(empty.body["_links"]["prev"]["href"])
    assert [row["id"] for row in back.data] == ids[:2]
    assert (back.meta["hasMore"], back.meta["prevCursor"]) == (False, None)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("query", ["limit=2", "limit=2&order=desc", "limit=2&sort=item"])
def test_page_has_none_before_it_once_all_earlier_rows_are_gone(admin, version, query):
    ids = [Order.objects.create(user=admin.user, item="x", qty=1).pk for _ in range(6)]
    second = admin.get(f"/api/v{version}/orders?cursor=&{query}").body["_links"]["next"]["href"]
    assert admin.get(second).meta["prevCursor"]
    first, last = (ids[4:], ids[:2]) if "desc" in query else (ids[:2], ids[4:])
    Order.objects.filter(pk__in=first).delete()
    page = admin.get(second)
    assert [row["id"] for row in page.data] == (ids[3:1:-1] if "desc" in query else ids[2:4])
    assert (page.meta["prevCursor"], page.meta["hasMore"]) == (None, True)
    assert "prev" not in page.body["_links"]
    # And on an empty page.
    Order.objects.exclude(pk__in=last).delete()
    Order.objects.filter(pk__in=last).delete()
    assert admin.get(second).meta == {"nextCursor": None, "prevCursor": None, "hasMore": False}


def test_has_more_is_told_true_on_the_way_back(admin):
    ids = [Order.objects.create(user=admin.user, item="x", qty=1).pk for _ in range(4)]
    second = admin.get(admin.get("/orders?cursor=&limit=2").body["_links"]["next"]["href"])
    first_again = second.body["_links"]["prev"]["href"]
    assert admin.get(first_again).meta["hasMore"] is True
    Order.objects.filter(pk__in=ids[2:]).delete()
    assert admin.get(first_again).meta["hasMore"] is False
