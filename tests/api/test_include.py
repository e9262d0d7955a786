"""Related resources beside the data: which, once each, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import Caller, with_key
from users import services

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(admin: Caller, user: Caller, other: Caller) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for owner in (user.user, other.user, admin.user):
        for _ in range(2):
            found.setdefault("orders", []).append(Order.objects.create(user=owner, item="Tea", qty=1).pk)
            found.setdefault("payments", []).append(Payment.objects.create(user=owner, amount="1.50").pk)
            post = Post.objects.create(user=owner, title="T")
            found.setdefault("posts", []).append(post.pk)
            found.setdefault("comments", []).append(Comment.objects.create(user=admin.user, post=post, text="C").pk)
    return found


@pytest.mark.parametrize("name", ["orders", "payments", "posts"])
def test_list_includes_each_owner_once_as_its_list_shows_it(admin: Caller, rows: Any, name: str) -> None:
    answer = admin.get(f"/api/v2/{name}?include=user&limit=5&fields=id")
    assert [row.keys() for row in answer.data] == [{"id"}] * 5
    owners = sorted({row["user_id"] for row in admin.get(f"/api/v2/{name}?limit=5").data})
    everybody = {row["id"]: row for row in admin.get("/api/v2/users").data}
    assert answer.body["included"] == {"user": {"data": [everybody[owner] for owner in owners]}}
    assert answer.body["_links"]["next"]["href"].count("include=user") == 1


def test_single_resource_includes_collections_and_their_further_pages(admin: Caller, user: Caller, rows: Any) -> None:
    path = f"/users/{user.user.pk}"
    for _ in range(20):
        Order.objects.create(user=user.user, item="Tea", qty=2)
    for form in ("/api/v2{}?", "/api{}?version=2&"):
        answer = admin.get(form.format(path) + "include=orders,posts,payments")
        assert list(answer.body["included"]) == ["orders", "posts", "payments"]
        for name, included in answer.body["included"].items():
            page = admin.get(form.format(f"{path}/{name}") + "limit=20")
            assert included["data"] == page.data
            assert ("_links" in included) == (name == "orders") == page.meta["hasMore"]
        following = answer.body["included"]["orders"]["_links"]["next"]["href"]
        page = admin.get(following)
        assert (page.status, len(page.data), page.meta["hasMore"]) == (200, 2, False)
        whole = [*answer.body["included"]["orders"]["data"], *page.data]
        assert [row["id"] for row in whole] == list(Order.objects.filter(user=user.user).values_list("id", flat=True))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/orders/{orders}", "user"),
        ("/payments/{payments}", "user"),
        ("/posts/{posts}", "user"),
        ("/posts/{posts}", "comments"),
        ("/comments/{comments}", "post"),
        ("/comments/{comments}", "user"),
        ("/users/{users}/orders", "user"),
        ("/posts/{posts}/comments", "post"),
    ],
)
def test_other_resources_include_what_they_link_to(
    admin: Caller, rows: Any, user: Caller, path: str, name: str
) -> None:
    filled = path.format(users=user.user.pk, **{key: ids[0] for key, ids in rows.items()})
    answer = admin.get(f"/api/v2{filled}?include={name}")
    (one,) = answer.body["included"][name]["data"]
    assert one.keys() >= {"id", "created_at"}
    assert "_links" not in one


def test_nobody_sees_more_than_by_itself(user: Caller, admin: Caller, rows: Any) -> None:
    """A plain user sees no other user, whoever wrote a post."""
    answer = user.get("/api/v2/posts?include=user&limit=100")
    assert [one["id"] for one in answer.body["included"]["user"]["data"]] == [user.user.pk]
    assert user.get(f"/api/v2/users/{admin.user.pk}?include=orders").status == 404
    order = Order.objects.filter(user=user.user).first()
    assert order is not None
    services.remove(type(user.user).objects.select_for_update().get(pk=user.user.pk))
    gone = admin.get(f"/api/v2/orders/{order.pk}?include=user")
    assert (gone.data["user_id"], gone.body["included"]) == (user.user.pk, {"user": {"data": []}})


def test_scope_of_each_is_needed(user: Caller, rows: Any) -> None:
    narrow = with_key(user.user, {"users:read", "posts:read"})
    path = f"/api/v2/users/{user.user.pk}"
    assert narrow.get(f"{path}?include=posts").status == 200
    answer = narrow.get(f"{path}?include=posts,orders")
    assert (answer.status, answer.code) == (403, "INSUFFICIENT_SCOPE")
    assert 'scope="orders:read"' in answer.headers["WWW-Authenticate"]
    answer = with_key(user.user, {"orders:read"}).get("/api/v2/orders?include=user")
    assert (answer.status, answer.code) == (403, "INSUFFICIENT_SCOPE")


def test_what_cannot_be_included_is_refused(admin: Caller, rows: Any) -> None:
    for query in [
        *("include=", "include=user,", "include=user,user", "include=users", "include=delete", "include=self"),
        *("include=user&envelope=false", "include=user&include=user", "include=%00", "include=orders"),
    ]:
        for path in ("/api/v2/orders", f"/api/v2/orders/{rows['orders'][0]}"):
            answer = admin.get(f"{path}?{query}")
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"include"}), path
        assert admin.get(f"/api/v1/orders?{query.replace('&envelope=false', '')}").status in {200, 400}


def test_list_includes_no_collection_and_a_write_nothing(admin: Caller, user: Caller) -> None:
    answer = admin.get("/api/v2/users?include=orders")
    assert (answer.status, answer.fields) == (400, {"include"})
    for method, path in (("POST", "/orders"), ("PATCH", f"/users/{user.user.pk}"), ("GET", "/api-keys")):
        body = {"item": "Tea", "qty": 1} if method == "POST" else {"name": "N"} if method == "PATCH" else None
        refused = admin(method, f"/api/v2{path}?include=user", body)
        assert (refused.status, refused.fields) == (400, {"include"}), path
    assert not Order.objects.exists()


def test_older_version_ignores_it(admin: Caller, rows: Any) -> None:
    for path in ("/api/v1/orders", f"/api/v1/orders/{rows['orders'][0]}"):
        answer = admin.get(f"{path}?include=user")
        assert (answer.status, "included" in answer.body) == (200, False)


def test_entity_tag_is_of_what_is_included_too(admin: Caller, user: Caller, rows: Any) -> None:
    path = f"/api/v2/orders/{rows['orders'][0]}"
    plain, both = (admin.get(path + query).headers["ETag"] for query in ("", "?include=user"))
    assert plain != both
    assert admin.get(f"{path}?include=user", if_none_match=both).status == 304
    admin.patch(f"/api/v2/users/{user.user.pk}", {"name": "Another"})
    changed = admin.get(f"{path}?include=user", if_none_match=both)
    assert (changed.status, changed.body["included"]["user"]["data"][0]["name"]) == (200, "Another")
