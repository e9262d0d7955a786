"""A walk through a search, beside a writer."""

from __future__ import annotations

from itertools import product
from threading import Event, Thread

import pytest
from django.db import connection

from tests.api.listing.test_filters import address
from tests.api.listing.test_search import commonness
from tests.conftest import Caller, with_bearer_of
from users import services
from users.models import User

__all__ = ["commonness"]


@pytest.mark.django_db(transaction=True)
def test_walk_beside_a_writer_returns_every_untouched_row_once(commonness: str) -> None:
    admin = services.create(name="Root", email="root@x.org", role="admin", password=None)
    untouched = [
        services.create(name=f"Anna {number}", email=f"u{number}@x.org", password=None).pk for number in range(40)
    ]
    busy = [services.create(name="Anna busy", email=f"b{number}@x.org", password=None).pk for number in range(12)]
    caller: Caller = with_bearer_of(admin)
    stopped = Event()

    def write() -> None:
        number = 0
        try:
            while not stopped.is_set():
                number += 1
                User.objects.filter(pk=busy[number % 12]).update(
                    name=f"{'ANNA' if number % 3 else 'Bert'} {number % 50}"
                )
                if number % 5 == 0:
                    User.objects.filter(pk=User.objects.create(name="Anna 7", email=f"w{number}@x.org").pk).delete()
        finally:
            connection.close()

    writer = Thread(target=write)
    writer.start()
    try:
        for sort, order in product(("id", "name", "email"), ("asc", "desc")):
            found: list[int] = []
            cursor: str | None = ""
            while cursor is not None:
                query = {"q": "anna", "sort": sort, "order": order, "limit": 3, "cursor": cursor}
                page = caller.get(address("users", query))
                found += [row["id"] for row in page.data]
                cursor = page.meta["nextCursor"]
            assert sorted(pk for pk in found if pk in untouched) == untouched, sort
    finally:
        stopped.set()
        writer.join()
