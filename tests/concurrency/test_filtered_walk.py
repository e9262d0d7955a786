"""A walk by cursor under each filter, beside a writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import cycle
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

from orders.models import Order
from payments.models import Payment
from posts.models import Post
from tests.api.listing.test_filters import VIEWS, address
from tests.conftest import Caller, with_bearer_of
from users import services
from users.models import User

UNTOUCHED = 21
# Of how the rows are made: the values of a row by its number.
MAKE: Mapping[str, Callable[[User, int], Model]] = {
    "users": lambda owner, number: User(name=f"N{number % 3}", email=f"n{number}@x.org", password="!"),
    "orders": lambda owner, number: Order(user=owner, item=f"I{number % 3}", qty=number % 4 + 1),
    "payments": lambda owner, number: Payment(user=owner, amount=Decimal(number % 4 + 1)),
    "posts": lambda owner, number: Post(user=owner, title=f"T{number % 3}"),
}
# Bounds within which every row is; and values, of which every row has one.
LEAST = {
    "id": "0",
    "qty": "0",
    "amount": "0",
    "created_at": "2000-01-01T00:00:00Z",
    "updated_at": "2000-01-01T00:00:00Z",
}
MOST = {"id": str(2**62), "qty": "99", "amount": "99", "created_at": "2200-01-01T00:00:00Z"}
MOST["updated_at"] = MOST["created_at"]
SEVERAL = {"role": "user,admin", "status": "active,inactive"}


def sample(name: str, owner: User, untouched: Sequence[int]) -> str:
    """A value of a filter that every row meets."""
    column, _, bound = name.rstrip("]").partition("[")
    if bound:
        return (LEAST if bound.startswith("g") else MOST)[column]
    values = {"id": ",".join(map(str, untouched)), "user_id": f"{owner.pk},1000000000"}
    return {**SEVERAL, **values}[name]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", VIEWS)
def test_walk_returns_every_untouched_row_once(name: str) -> None:
    owner = services.create(name="Root", email="root@x.org", role="admin", password=None)
    rows: list[Any] = [MAKE[name](owner, number) for number in range(UNTOUCHED)]
    untouched = [row.pk for row in rows[0].__class__._default_manager.bulk_create(rows)]
    caller: Caller = with_bearer_of(owner)
    stopped = Event()

    def write() -> None:
        number = UNTOUCHED
        try:
            while not stopped.is_set():
                number += 1
                passing = MAKE[name](owner, number)
                passing.save()
                if number % 8:
                    passing.delete()
        finally:
            connection.close()

    filters = [*VIEWS[name].filterset_class.first, *VIEWS[name].filterset_class.later]
    orders, walked = cycle(("asc", "desc")), set()
    writer = Thread(target=write)
    writer.start()
    try:
        for each in filters:
            if each in {"q", "email"}:
                # The one has a test of its own, the other leaves a single row.
                continue
            for sort in VIEWS[name].sortable:
                query = {each: sample(each, owner, untouched), "sort": sort, "order": next(orders), "limit": 8}
                found = walk(caller, name, query)
                if found is not None:
                    walked.add(each)
                    assert sorted(pk for pk in found if pk in set(untouched)) == untouched, query
    finally:
        stopped.set()
        writer.join()
    assert walked == set(filters) - {"q", "email"}


def walk(caller: Caller, name: str, query: Mapping[str, object]) -> list[int] | None:
    """The ids that a walk returns; None where the filter does not go with the sort."""
    found: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = caller.get(address(name, {**query, "cursor": cursor}))
        if page.status == 400 and not found:
            return None
        found += [row["id"] for row in page.data]
        cursor = page.meta["nextCursor"]
    return found
