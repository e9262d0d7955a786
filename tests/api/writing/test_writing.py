"""What a body's members do: required, ignored, read-only, and all their problems told at once."""

from typing import Any

import pytest

from orders.models import Order
from orders.serializers import OrderSerializer
from orders.views import OrderViewSet
from tests.conftest import PASSWORD, Caller, with_key, with_password


@pytest.fixture
def address(admin: Caller):
    """Fills in the ids of an address: the administrator's, and those of a post and a comment by it."""
    post = admin.post(f"/users/{admin.user.pk}/posts", {"title": "first"}).data["id"]
    comment = admin.post(f"/posts/{post}/comments", {"text": "first"}).data["id"]
    return lambda path: path.format(id=admin.user.pk, post=post, comment=comment)


def test_every_required_field_is_named_when_all_are_missing(admin: Caller, address) -> None:
    for method, path, required in [
        ("POST", "/users", {"name", "email"}),
        ("PUT", "/users/{id}", {"name", "email"}),
        ("POST", "/orders", {"item", "qty"}),
        ("POST", "/payments", {"amount"}),
        ("POST", "/users/{id}/posts", {"title"}),
        ("PUT", "/posts/{post}", {"title"}),
        ("POST", "/posts/{post}/comments", {"text"}),
        ("PUT", "/comments/{comment}", {"text"}),
    ]:
        for empty in ["left out", "null"]:
            body = {} if empty == "left out" else dict.fromkeys(required)
            answer = admin(method, address(path), body, idempotency_key="k")
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", required)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users", {"name": 1, "email": "a", "role": "x", "status": None, "password": True}),
        ("PUT", "/users/{id}", {"name": " ", "email": [], "role": 1, "status": {}}),
        ("PATCH", "/users/{id}", {"name": "a\nb", "email": "a@", "role": "", "status": "gone"}),
        ("POST", "/orders", {"item": "", "qty": "2", "user_id": None}),
        ("POST", "/orders", {"item": ["a"], "qty": 1e3, "user_id": "1"}),
        ("POST", "/payments", {"amount": 0.001, "user_id": True}),
        ("POST", "/users/{id}/posts", {"title": "a" * 201, "body": 5}),
        ("PUT", "/posts/{post}", {"title": None, "body": "\x00"}),
        ("PATCH", "/posts/{post}", {"title": {}, "body": []}),
    ],
)
def test_every_wrong_field_is_named_at_once(
    admin: Caller, address, *, method: str, path: str, body: dict[str, Any]
) -> None:
    before = admin.get(address("/users/{id}")).data, admin.get(address("/posts/{post}")).data
    answer = admin(method, address(path), body, idempotency_key="k")
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", set(body))
    assert all(detail["message"] for detail in answer.error["details"])
    assert (admin.get(address("/users/{id}")).data, admin.get(address("/posts/{post}")).data) == before


@pytest.mark.parametrize("current", [{}, {"current_password": "not this one"}], ids=["missing", "wrong"])
@pytest.mark.parametrize("other", [{}, {"name": " "}, {"email": None}], ids=["alone", "name", "email"])
def test_wrong_current_password_is_named_beside_every_other_problem(
    make_user, current: dict[str, str], other: dict[str, Any]
) -> None:
    caller = with_password(make_user(password=PASSWORD))
    answer = caller.patch(f"/users/{caller.user.pk}", {"password": "a wholly new one", **current, **other})
    assert (answer.code, answer.fields) == ("VALIDATION_ERROR", {"current_password", *other})
    assert caller.get("/api/protected").status == 200


UNKNOWN = {
    "x": 1,
    "": None,
    "is_superuser": True,
    "removed_at": "now",
    "a.b": [],
    "\ud800": "\ud800",
}
# Ids that no row of the tests reaches.
NO_ID = 10**12
READ_ONLY = {"id": NO_ID, "user_id": NO_ID, "row_version": 9, "created_at": "1999-01-01T00:00:00Z", "updated_at": None}


@pytest.mark.parametrize(
    ("method", "path", "body", "ignored"),
    [
        ("POST", "/users", {"name": "a", "email": "new@example.com"}, READ_ONLY),
        ("PUT", "/users/{id}", {"name": "a", "email": "new@example.com", "role": "admin"}, READ_ONLY),
        ("PATCH", "/users/{id}", {"name": "a"}, READ_ONLY),
        ("POST", "/orders", {"item": "a", "qty": 1}, {"id": NO_ID, "created_at": "x"}),
        ("POST", "/payments", {"amount": 1}, {"id": NO_ID, "created_at": []}),
        ("POST", "/users/{id}/posts", {"title": "a"}, {**READ_ONLY, "comments": [{"text": "x"}], "comments_count": 9}),
        ("PUT", "/posts/{post}", {"title": "a"}, {**READ_ONLY, "comments": None, "comments_count": "x"}),
        ("PATCH", "/posts/{post}", {"title": "a"}, {**READ_ONLY, "comments": [], "comments_count": -1}),
        ("POST", "/posts/{post}/comments", {"text": "a"}, {**READ_ONLY, "post_id": NO_ID}),
        ("PUT", "/comments/{comment}", {"text": "a"}, {**READ_ONLY, "post_id": {}}),
    ],
)
def test_unknown_and_read_only_members_are_ignored(
    admin: Caller, address, *, method: str, path: str, body: dict[str, Any], ignored: dict[str, Any]
) -> None:
    answer = admin(method, address(path), {**UNKNOWN, **ignored, **body}, idempotency_key="k")
    assert answer.status in {200, 201}
    assert not UNKNOWN.keys() & answer.data.keys()
    assert "row_version" not in answer.data
    assert {name: value for name, value in answer.data.items() if name in ignored and value == ignored[name]} == {}
    assert {name: answer.data[name] for name in body if name != "amount"} == {
        name: value for name, value in body.items() if name != "amount"
    }


def test_replacement_returns_what_it_leaves_out_to_its_default(admin: Caller, make_user, address) -> None:
    somebody = make_user("support", status="inactive")
    answer = admin.put(f"/users/{somebody.pk}", {"name": "a", "email": somebody.email})
    assert (answer.data["role"], answer.data["status"]) == ("user", "active")
    admin.patch(address("/posts/{post}"), {"body": "something"})
    assert admin.put(address("/posts/{post}"), {"title": "a"}).data["body"] == ""


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("path", ["/users/{id}", "/posts/{post}", "/comments/{comment}"])
def test_write_of_the_present_values_changes_nothing(admin: Caller, address, *, path: str, method: str, version: int):
    path = f"/api/v{version}{address(path)}"
    before = admin.get(path)
    for headers in ({}, {"if_match": before.headers["ETag"]}, {"if_match": "*"}):
        written = admin(method, path, before.data, **headers)
        assert (written.status, written.data) == (200, before.data)
        assert written.headers["ETag"] == before.headers["ETag"]
    after = admin.get(path)
    assert (after.data, after.headers["ETag"]) == (before.data, before.headers["ETag"])
    assert admin.get(path, if_none_match=before.headers["ETag"]).status == 304


@pytest.mark.parametrize(
    ("path", "same", "changed"),
    [
        ("/users/{id}", {"name": "Ada Admin", "role": "admin", "status": None}, {"email": "ADMIN1@example.com"}),
        ("/posts/{post}", {"title": "first"}, {"body": "something"}),
        ("/posts/{post}", {"body": None}, {"title": "first "}),
        ("/comments/{comment}", {"text": "first"}, {"text": "First"}),
    ],
)
def test_change_beside_present_values_moves_the_tag_and_updated_at(
    admin: Caller, address, *, path: str, same: dict[str, Any], changed: dict[str, Any]
) -> None:
    path = address(path)
    before = admin.get(path)
    assert admin.patch(path, same).headers["ETag"] == before.headers["ETag"]
    after = admin.patch(path, {**same, **changed})
    assert {name: after.data[name] for name in changed} == changed
    assert after.data["updated_at"] > before.data["updated_at"]
    assert after.headers["ETag"] != before.headers["ETag"]
    assert admin.patch(path, changed, if_match=before.headers["ETag"]).status == 412


def test_comment_that_stays_as_it_is_leaves_its_post_as_it_is(admin: Caller, address) -> None:
    before = admin.get(address("/posts/{post}")).headers["ETag"]
    assert admin.put(address("/comments/{comment}"), {"text": "first"}).status == 200
    assert admin.get(address("/posts/{post}")).headers["ETag"] == before


def test_same_password_once_more_is_a_change(make_user) -> None:
    administrator, somebody = with_password(make_user("admin", password=PASSWORD)), make_user(password=PASSWORD)
    path = f"/users/{somebody.pk}"
    before = administrator.get(path)
    after = administrator.patch(path, {"password": PASSWORD})
    # No field of the representation has changed, but the sessions are over, and of two writers one wins.
    assert after.data == before.data
    assert after.headers["ETag"] != before.headers["ETag"]


@pytest.mark.parametrize("version", [1, 2])
def test_required_and_null_are_told_in_the_same_words(admin: Caller, address, version: int) -> None:
    def told(method: str, path: str, body: dict[str, Any]) -> dict[str, str]:
        answer = admin(method, f"/api/v{version}{address(path)}", body, idempotency_key="k")
        return {detail["field"]: detail["message"] for detail in answer.error["details"]}

    assert told("POST", "/orders", {"item": None, "user_id": None}) == {
        "item": "Must not be null.",
        "qty": "Is required.",
        "user_id": "Must not be null.",
    }
    assert told("POST", "/orders", {"item": "a" * 201, "qty": 0}) == {
        "item": "Must have at most 200 characters.",
        "qty": "Must be at least 1.",
    }
    assert told("POST", "/orders", {"item": "a", "qty": 1_000_001}) == {"qty": "Must be at most 1000000."}
    assert told("POST", "/payments", {"amount": 0}) == {"amount": "Must be at least 0.01."}
    assert told("POST", "/payments", {"amount": 10**10}) == {"amount": "Must be at most 9999999999.99."}
    assert told("PATCH", "/posts/{post}", {"title": None, "body": "a" * 20_001}) == {
        "title": "Must not be null.",
        "body": "Must have at most 20000 characters.",
    }
    assert told("POST", "/login", {"email": None}) == {"email": "Must not be null.", "password": "Is required."}


# --- A row is there, or it is not


@pytest.mark.parametrize(
    ("kind", "name", "named"),
    [
        (OrderViewSet, "respond", False),
        (OrderViewSet, "respond_created", False),
        (OrderViewSet, "perform_create", True),
        (OrderViewSet, "respond", True),
        (OrderSerializer, "create", True),
        (OrderSerializer, "save", True),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "k"}], ids=["without a key", "with a key"])
def test_what_fails_while_a_row_is_added_leaves_none(
    transactional_db, make_user, monkeypatch, *, kind, name, named, headers
):
    """One's own order is added when its answer is made; that of a user who is named, and held, in a transaction."""
    usual = getattr(kind, name)

    def fail(self: Any, *arguments: Any, **options: Any) -> None:
        usual(self, *arguments, **options)
        raise RuntimeError

    caller, order = with_key(make_user("admin")), {"item": "Tea", "qty": 1}
    if named:
        order["user_id"] = make_user().pk
    with monkeypatch.context() as patched:
        patched.setattr(kind, name, fail)
        assert caller.post("/orders", order, **headers).code == "INTERNAL_ERROR"
    assert not Order.objects.exists()
    assert caller.post("/orders", order, **headers).status == 201
    assert Order.objects.count() == 1


@pytest.mark.parametrize("role", ["user", "admin"])
def test_new_order_is_seen_by_others_when_it_is_answered(transactional_db, make_user, elsewhere, role):
    caller, other = with_key(make_user(role)), make_user()
    owners = [caller.user.pk, other.pk] if role == "admin" else [caller.user.pk]
    answers = [caller.post("/orders", {"item": "Tea", "qty": 1, "user_id": owner}).data["id"] for owner in owners]
    answers.append(caller.post("/orders", {"item": "Tea", "qty": 1}).data["id"])
    assert elsewhere.execute("SELECT id FROM orders_order ORDER BY id").fetchall() == [(one,) for one in answers]
