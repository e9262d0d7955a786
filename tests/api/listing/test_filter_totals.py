"""Lists under filters of later versions: their totals, and what a walk meets beside a writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from config.api.listing.bounded import MAX_COUNTED
from posts.models import Comment, Post
from tests.api.wire import quickly
from tests.conftest import Caller

pytestmark = pytest.mark.django_db


def test_comments_have_bounds_too(admin: Caller) -> None:
    post = Post.objects.create(user=admin.user, title="T")
    ids = [Comment.objects.create(user=admin.user, post=post, text="C").pk for _ in range(5)]
    path = f"/api/v2/posts/{post.pk}/comments"
    assert [row["id"] for row in admin.get(f"{path}?id[gt]={ids[1]}&id[lte]={ids[3]}").data] == ids[2:4]
    assert [row["id"] for row in admin.get(f"{path}?id={ids[4]},{ids[0]}&sort=updated_at").data] == [ids[0], ids[4]]


@pytest.fixture
def many(admin: Caller) -> Callable[[int], None]:
    def add(count: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO orders_order (user_id, item, qty) SELECT %s, 'I', 7 FROM generate_series(1, %s)",
                [admin.user.pk, count],
            )
            # As autovacuum does. Rows that other tests rolled back may have left statistics of an empty table.
            cursor.execute("ANALYZE orders_order")

    return add


def test_total_is_counted_up_to_a_bound(admin: Caller, user: Caller, many: Callable[[int], None]) -> None:
    many(MAX_COUNTED)
    path = "/api/v2/orders?qty[gte]=7&sort=qty"
    exact = admin.get(f"{path}&page=1")
    assert exact.meta == {"page": 1, "limit": 20, "total": 10_000, "totalPages": 500}
    assert exact.body["_links"]["last"]["href"].endswith("page=500")
    many(1)
    for filters in ("qty[gte]=7&sort=qty", f"user_id={admin.user.pk}", f"user_id={admin.user.pk},{user.user.pk}"):
        answer = admin.get(f"/api/v2/orders?{filters}&page=1")
        assert answer.meta == {"page": 1, "limit": 20, "total": None, "totalPages": None, "totalAtLeast": 10_000}
        assert answer.body["_links"].keys() == {"self", "first", "next"}
    bare = admin.fetch("GET", f"{path}&page=1&envelope=false")
    assert "X-Total-Count" not in bare.headers
    last = admin.get(f"{path}&page=500")
    assert (len(last.data), last.body["_links"].keys()) == (20, {"self", "first", "prev"})
    for beyond, field in (("page=501", "page"), ("offset=9981", "offset"), ("page=9223372036854775807", "page")):
        refused = admin.get(f"{path}&{beyond}")
        assert (refused.status, refused.fields) == (400, {field})
        assert "cursor" in refused.error["details"][0]["message"]
    assert admin.get(f"{path}&offset=9980").status == 200
    # Counts are kept of these, and of those that stand alone.
    assert admin.get("/api/v2/orders?page=1").meta["total"] == MAX_COUNTED + 1
    assert admin.fetch("GET", f"{path}&page=1", accept="text/html").status_code == 200


def test_totals_of_several_roles_are_exact_and_kept(
    admin: Caller, make_user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        make_user(("user", "support")[number % 2], status=("active", "inactive")[number // 2 % 2])
    counted = admin.get("/api/v2/users?role=user,support&status=active&page=1&limit=3")
    assert counted.meta == {"page": 1, "limit": 3, "total": 10, "totalPages": 4}
    assert admin.get("/api/v2/users?role=user,support,admin&page=1").meta["total"] == 21
    # However they are written: a count up to a bound would say no more than that there are more.
    monkeypatch.setattr("config.api.listing.bounded.MAX_COUNTED", 3)
    monkeypatch.setattr("config.api.listing.pagination.MAX_COUNTED", 3)
    for roles in ("user,support", "user,user", "support,user,support"):
        counted = admin.get(f"/api/v2/users?role={roles}&page=5&limit=2").meta["total"]
        assert counted == (10 if roles == "user,user" else 20)


def test_hundreds_of_values_of_two_filters_are_refused_at_once(admin: Caller) -> None:
    """Each combination would be a query of its own."""
    values = ",".join(f"v{number}" for number in range(200))
    for version in (1, 2):
        with quickly():
            assert admin.get(f"/api/v{version}/users?role={values}&status={values}").status == 400
