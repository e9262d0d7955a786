"""GET /events: who sees what, in which order, and how a follower goes on."""

from __future__ import annotations

import pytest

from config.api.principal import Principal
from config.events import feed
from config.models import Event, EventEpoch
from config.models.events import is_visible
from config.postgresql import events
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import Caller, with_key
from users.models import User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("whole_feed")]

V1, V2 = "/api/v1/events", "/api/v2/events"


@pytest.fixture
def world(user, other, admin, support):
    """An order, a payment, a post and a comment of each of two users; what was before is left out."""
    Event.objects.all().delete()
    for each in (user, other):
        make_rows(each.user)


def make_rows(owner: User) -> None:
    post = Post.objects.create(user=owner, title="t")
    Comment.objects.create(user=owner, post=post, text="c")
    Order.objects.create(user=owner, item="i", qty=1)
    Payment.objects.create(user=owner, amount=1)
    User.objects.filter(pk=owner.pk).update(name="renamed")


ALL = ["post.created", "comment.created", "order.created", "payment.created", "user.updated"]


def read(caller: Caller, query: str = "", path: str = V2):
    """What a caller sees: whose, and of which type."""
    answer = caller.get(f"{path}?limit=100{query}")
    assert answer.status == 200, answer
    return [(event["user_id"], event["type"]) for event in answer.data]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("path", [V1, V2, "/events"])
def test_staff_sees_all_in_order(admin, support, user, other, path):
    everything = [(each.user.pk, name) for each in (user, other) for name in ALL]
    assert read(admin, path=path) == read(support, path=path) == everything


def test_plain_user_sees_its_own_and_what_is_public(world, user, other):
    public = [name for name in ALL if name.startswith(("post", "comment"))]
    assert read(user) == [(user.user.pk, name) for name in ALL] + [(other.user.pk, name) for name in public]
    assert read(other, f"&user_id={other.user.pk}") == [(other.user.pk, name) for name in ALL]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("scopes", "seen"),
    [
        (["posts:read", "users:read"], ["comment.removed", "post.removed", "user.removed"]),
        (["posts:read"], ["comment.removed", "post.removed"]),
        (["users:read"], []),
    ],
)
def test_removal_is_seen_by_who_might_see_the_row(user, other, admin, scopes, seen):
    follower = with_key(other.user, ["events:read", *scopes])
    Event.objects.all().delete()
    Post.objects.filter(user=user.user).delete()
    admin.delete(f"/api/v2/users/{user.user.pk}")
    assert read(follower) == [(user.user.pk, name) for name in seen]
    assert [name for _, name in read(admin)] == ["comment.removed", "post.removed", "user.removed"]


def test_plain_follower_keeps_a_complete_copy_of_the_posts(world, user, other, admin):
    cursor = user.get(f"{V2}?cursor=now").meta["nextCursor"]

    def list_posts():
        return {post["id"]: post["user_id"] for post in user.get("/api/v2/posts?limit=100").data}

    kept = list_posts()
    for title in ("kept", "gone"):
        last = other.post(f"/api/v2/users/{other.user.pk}/posts", {"title": title}).data["id"]
    other.delete(f"/api/v2/posts/{last}")
    user.post(f"/api/v2/users/{user.user.pk}/posts", {"title": "mine"})
    admin.delete(f"/api/v2/users/{other.user.pk}")
    events = user.get(f"{V2}?limit=100&cursor={cursor}&type=post.created,post.removed,user.removed").data
    for event in events:
        match event["type"]:
            case "post.created":
                kept[event["resource"]["id"]] = event["user_id"]
            case "post.removed":
                del kept[event["resource"]["id"]]
            case "user.removed":
                kept = {post: owner for post, owner in kept.items() if owner != event["user_id"]}
    assert kept == list_posts()
    assert {*kept.values()} == {user.user.pk}
    shown = {name: events[-1][name] for name in ("resource", "user_id", "changed", "actor", "request_id")}
    resource = {"type": "user", "id": other.user.pk, "href": f"/api/v2/users/{other.user.pk}"}
    nothing = dict.fromkeys(("changed", "actor", "request_id"))
    assert shown == {"resource": resource, "user_id": other.user.pk, **nothing}


@pytest.mark.parametrize("resource", ["orders", "payments", "posts", "users"])
def test_event_needs_the_read_scope_of_its_resource(world, user, resource):
    caller_scopes = ["events:read", f"{resource}:read"]
    caller = with_key(user.user, caller_scopes)
    own = {"posts": ["post.created", "comment.created"], "users": ["user.updated"]}.get(
        resource, [f"{resource[:-1]}.created"]
    )
    seen = read(caller)
    assert [name for owner, name in seen if owner == user.user.pk] == own
    assert {name for _, name in seen} == {*own}
    principal = Principal(user.user, frozenset(caller_scopes), "api_key")
    shown = [(event.user_id, event.type) for event in Event.objects.order_by("id") if is_visible(event, principal)]
    assert shown == seen
    refused = caller.get(f"{V2}?type={'order.created' if resource != 'orders' else 'payment.created'}")
    assert (refused.status, refused.code) == (403, "INSUFFICIENT_SCOPE")


def test_feed_needs_its_own_scope(world, user):
    refused = with_key(user.user, ["orders:read"]).get(V2)
    assert (refused.status, refused.code) == (403, "INSUFFICIENT_SCOPE")
    assert read(with_key(user.user, ["events:read"])) == []


def test_types_and_owner_are_filters(world, admin, user, other):
    assert read(admin, "&type=order.created") == [(each.user.pk, "order.created") for each in (user, other)]
    found = read(admin, f"&type=order.created,user.updated&user_id={other.user.pk}")
    assert found == [(other.user.pk, "order.created"), (other.user.pk, "user.updated")]
    refused = user.get(f"{V2}?user_id={other.user.pk}")
    assert (refused.status, refused.fields) == (403, {"user_id"})


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page=1", "page"),
        ("offset=0", "offset"),
        ("sort=id", "sort"),
        ("type=order.removed", "type"),
        ("type=", "type"),
        ("user_id=x", "user_id"),
        ("include=user", "include"),
        ("include=resource&envelope=false", "include"),
        ("fields=name", "fields"),
        ("limit=0", "limit"),
        ("cursor=a&cursor=b", "cursor"),
    ],
)
def test_what_is_wrong_with_the_query_is_named(admin, version, query, field):
    refused = admin.get(f"{version}?{query}")
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {field})


def test_representation(world, admin, user):
    user.post("/api/v2/orders", {"item": "i", "qty": 1}, x_request_id="mine")
    shown = admin.get(f"{V2}?limit=100").data[-1]
    order = Order.objects.order_by("id").last().pk
    expected = {
        "id": Event.objects.order_by("id").last().pk,
        "cursor": shown["cursor"],
        "type": "order.created",
        "created_at": shown["created_at"],
        "resource": {"type": "order", "id": order, "href": f"/api/v2/orders/{order}"},
        "user_id": user.user.pk,
        "changed": None,
        "actor": {"user_id": user.user.pk, "credential": "api_key"},
        "request_id": "mine",
    }
    assert shown == expected
    own = user.get(f"{V2}?limit=100&user_id={user.user.pk}").data[-1]
    assert own == expected | {"actor": None, "request_id": None}
    assert user.get(f"/events?version=2&fields=id,resource&type=order.created&cursor={expected['cursor']}").data == []
    (last,) = [
        each for each in user.get("/events?version=2&fields=id,resource&limit=100").data if each["id"] == own["id"]
    ]
    assert last == {"id": own["id"], "resource": {**own["resource"], "href": f"/orders/{order}?version=2"}}


def test_resource_is_included_as_it_is_now(world, admin, user, other):
    Post.objects.filter(user=user.user).delete()
    answer = admin.get(f"{V2}?include=resource&limit=100&user_id={user.user.pk}")
    order = admin.get(f"/api/v2/orders?user_id={user.user.pk}").data[0]
    included = dict(
        zip([event["type"] for event in answer.data], answer.body["included"]["resource"]["data"], strict=True)
    )
    assert included["order.created"] == order
    assert included["user.updated"]["name"] == "renamed"
    assert [included[name] for name in ("post.created", "comment.created", "post.removed")] == [None] * 3


# --- Following


def follow(caller: Caller, query: str = "limit=3", cursor: str = ""):
    """All that a follower gets until there is no more, and where it goes on."""
    read = []
    while True:
        answer = caller.get(f"{V2}?{query}&cursor={cursor}")
        read += [event["id"] for event in answer.data]
        cursor = answer.meta["nextCursor"]
        if not answer.meta["hasMore"]:
            return read, cursor


def test_pages_have_each_event_once_whatever_is_filtered(world, admin, user, monkeypatch):
    monkeypatch.setattr(feed, "MAX_SCANNED", 4)
    monkeypatch.setattr(feed, "_PAGE", feed._PAGE.replace("5000", "4"))
    everything = [*Event.objects.order_by("id").values_list("id", flat=True)]
    assert follow(admin)[0] == everything
    for query in ("type=user.updated", "limit=1&type=post.created,payment.created", f"user_id={user.user.pk}"):
        read, cursor = follow(admin, query)
        assert (
            read == [event["id"] for event in admin.get(f"{V2}?limit=100&{query.replace('limit=1', '')}").data] or read
        )
        assert len(read) == {"t": 2, "l": 4, "u": 5}[query[0]]
        # Up to date with all, though nothing of the last ones was for it: what is dropped later does not touch it.
        assert follow(admin, "limit=3", cursor) == ([], cursor)


def test_end_of_the_feed_is_where_the_next_event_comes(world, admin, user):
    end = admin.get(f"{V2}?cursor=now")
    assert (end.data, end.meta["hasMore"]) == ([], False)
    assert end.body["_links"]["next"]["href"] == f"{V2}?cursor={end.meta['nextCursor']}"
    again = admin.get(f"{V2}?cursor={end.meta['nextCursor']}")
    assert (again.data, again.meta) == ([], end.meta)
    user.post("/api/v2/orders", {"item": "i", "qty": 1})
    (event,) = admin.get(f"{V2}?cursor={end.meta['nextCursor']}").data
    assert event["type"] == "order.created"
    bare = admin.get(f"{V2}?cursor={end.meta['nextCursor']}&envelope=false")
    assert [each["id"] for each in bare.body] == [event["id"]]
    assert f'cursor={event["cursor"]}>; rel="next"' in bare.headers["Link"]


def test_cursor_of_an_event_leads_on_behind_it_under_any_filter(world, admin, support):
    first, second, *_ = admin.get(V2).data
    assert support.get(f"{V2}?cursor={first['cursor']}&limit=1").data[0]["id"] == second["id"]


@pytest.mark.parametrize("cursor", ["x", "bm90IGEgY3Vyc29y"])
def test_made_up_cursor_is_refused(admin, cursor):
    refused = admin.get(f"{V2}?cursor={cursor}")
    assert (refused.status, refused.code) == (400, "INVALID_CURSOR")
    listed = admin.get("/api/v2/users?cursor=&limit=1").meta["nextCursor"]
    assert admin.get(f"{V2}?cursor={listed}").code == "INVALID_CURSOR"


def assert_expired(caller, cursor):
    refused = caller.get(f"{V2}?cursor={cursor}")
    assert (refused.status, refused.code, refused.fields) == (410, "CURSOR_EXPIRED", {"cursor"})
    assert "cursor=now" in refused.error["message"]


def test_cursor_of_another_history_is_expired(world, admin):
    """The database was restored to a moment before the event, and other ones came since."""
    *_, last = admin.get(V2).data
    Event.objects.filter(pk=last["id"]).update(created_at="2026-01-01T00:00:00Z")
    assert_expired(admin, last["cursor"])


def test_restored_dump_begins_anew_by_a_migration(world, admin):
    cursor = admin.get(V2).meta["nextCursor"]
    EventEpoch.objects.update(origin="1/2/3")
    refused = admin.get(f"{V2}?cursor={cursor}")
    assert (refused.status, refused.code) == (503, "SERVICE_UNAVAILABLE")
    events.switch()
    assert_expired(admin, cursor)
    assert admin.get(V2).data == []


def test_feed_that_was_off_begins_anew(world, admin, user, settings):
    cursor = admin.get(V2).meta["nextCursor"]
    settings.EVENTS = False
    events.switch()
    make_rows(User.objects.create(name="New", email="new@example.com"))
    Post.objects.all().delete()
    assert not Event.objects.exists()
    settings.EVENTS = True
    events.switch()
    assert_expired(admin, cursor)
    Order.objects.create(user=user.user, item="j", qty=1)
    assert [event["type"] for event in admin.get(V2).data] == ["order.created"]
    epoch = EventEpoch.objects.get()
    events.switch()
    assert EventEpoch.objects.get() == epoch
