"""Removing a user: a nameless tombstone stays, with the books and nothing else."""

import json

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.test import Client

from accounts.models import APIKey
from config.erasure import eraser
from config.models import Erasure, VisibleManager
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import PASSWORD, with_key, with_password
from users.models import User

NAME, EMAIL = "Nadia Nameless", "nadia@example.com"


def relations():
    return [
        relation
        for relation in User._meta.get_fields(include_hidden=True)
        if relation.is_relation and relation.auto_created and not relation.concrete
    ]


@pytest.fixture
def nadia(make_user):
    return make_user(name=NAME, email=EMAIL, password=PASSWORD)


@pytest.fixture
def everything(nadia, other):
    """Rows of every kind that refer to the user."""
    own, others = Post.objects.create(user=nadia, title="Own"), Post.objects.create(user=other.user, title="Other")
    return {
        "order": Order.objects.create(user=nadia, item="Book", qty=2),
        "payment": Payment.objects.create(user=nadia, amount="12.30"),
        "own post": own,
        "post of another": others,
        "own comment": Comment.objects.create(post=others, user=nadia, text="By Nadia"),
        "comment of another": Comment.objects.create(post=others, user=other.user, text="By Otto"),
        "comment on own post": Comment.objects.create(post=own, user=other.user, text="For Nadia"),
    }


@pytest.fixture
def remove(admin, nadia):
    def act():
        answer = admin.delete(f"/users/{nadia.pk}")
        assert (answer.status, answer.response.content) == (204, b"")

    return act


def test_every_relation_to_a_user_says_what_becomes_of_it():
    undecided = {
        f"{relation.related_model._meta.label}.{relation.field.name}"
        for relation in relations()
        if relation.on_delete not in {models.CASCADE, models.PROTECT}
    }
    assert len(relations()) >= 6
    assert not undecided


def test_rows_that_go_with_a_user_are_invisible_before_they_are_erased():
    """Except those of libraries, whose managers know nothing of it: see the admin pages and the look-ups of tokens."""
    going = {relation.related_model for relation in relations() if relation.on_delete is models.CASCADE}
    own = {model for model in going if not model.__module__.startswith(("django.", "oauth2_provider."))} - {Erasure}
    assert len(own) >= 8
    for model in own:
        assert isinstance(model._default_manager, VisibleManager), model
        assert "config_erasure" in str(model._default_manager.all().query), model


def test_nothing_but_the_books_is_left_once_it_is_erased(remove, everything, nadia, other):
    with_key(nadia)
    with_password(nadia).get("/api/protected")
    remove()
    posts = {row.pk: row.row_version for row in Post.objects.all()}
    assert Erasure.objects.filter(user_id=nadia.pk).exists()
    assert eraser.erase() == 1
    referring = {
        relation.related_model._meta.label
        for relation in relations()
        if relation.related_model._base_manager.filter(**{relation.field.name: nadia.pk}).exists()
    }
    assert referring == {"orders.Order", "payments.Payment"}
    assert not Comment._base_manager.filter(pk=everything["comment on own post"].pk).exists()
    # To be erased changes nothing that anybody sees.
    assert {row.pk: row.row_version for row in Post.objects.all()} == posts
    assert eraser.erase() == 0


def test_entity_tags_of_posts_move_when_a_commenter_is_removed_and_not_when_its_comments_are_erased(
    remove, everything, other
):
    path = f"/posts/{everything['post of another'].pk}"
    before = other.get(path).response["ETag"]
    remove()
    after = other.get(path)
    assert after.response["ETag"] != before
    assert other.patch(path, {"title": "Late"}, if_match=before).status == 412
    eraser.erase()
    again = other.get(path)
    assert (again.response["ETag"], again.body) == (after.response["ETag"], after.body)
    assert other.patch(path, {"title": "In time"}, if_match=after.response["ETag"]).status == 200


def test_keys_and_trail_of_the_removed_user_are_in_no_list_of_administrators(remove, nadia, admin, administrator):
    with_key(nadia)
    assert nadia.pk in APIKey.objects.values_list("user_id", flat=True)
    remove()
    assert admin.get("/api-keys").meta["total"] == APIKey._base_manager.exclude(user_id=nadia.pk).count()
    browser = Client()
    browser.force_login(administrator)
    for name in ("accounts/apikey", "accounts/loginsession", "config/auditevent", "posts/post", "posts/comment"):
        rows = browser.get(f"/admin/{name}/?user__id__exact={nadia.pk}").context["cl"].result_list
        assert list(rows) == [], name


def test_removed_user_is_not_found_by_any_method(remove, nadia, admin):
    remove()
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = admin(method, f"/users/{nadia.pk}", {"name": "New", "email": "new@example.com"})
        assert (answer.status, answer.code) == (404, "NOT_FOUND"), method
    for path in ("orders", "payments", "posts"):
        assert admin.get(f"/users/{nadia.pk}/{path}").status == 404, path
    assert admin.post(f"/users/{nadia.pk}/posts", {"title": "Late"}).status == 404


def test_tombstone_holds_nothing_of_the_person(remove, nadia, everything):
    password = nadia.password
    remove()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(u) FROM users_user u WHERE id = %s", [nadia.pk])
        row = json.loads(cursor.fetchone()[0])
    assert (row["name"], row["email"], row["password"]) == ("", "", "")
    assert row["removed_at"] is not None
    kept = json.dumps(row)
    assert not any(text in kept for text in (NAME, EMAIL, password))


def test_posts_comments_and_keys_go(remove, nadia, everything, other):
    own = with_key(nadia)
    assert own.get(f"/posts/{everything['own post'].pk}").status == 200
    remove()
    assert other.get(f"/posts/{everything['own post'].pk}").status == 404
    assert other.get(f"/comments/{everything['comment on own post'].pk}").status == 404
    assert other.get(f"/comments/{everything['own comment'].pk}").status == 404
    post = other.get(f"/posts/{everything['post of another'].pk}").data
    assert [comment["text"] for comment in post["comments"]] == ["By Otto"]
    assert post["comments_count"] == 1
    assert not APIKey.objects.filter(user_id=nadia.pk).exists()
    assert not Post.objects.filter(user_id=nadia.pk).exists()
    assert not Comment.objects.filter(user_id=nadia.pk).exists()


@pytest.mark.parametrize("kind", ["order", "payment"])
def test_orders_and_payments_stay_for_the_staff_without_a_link_to_the_user(
    remove, everything, nadia, *, admin, support, other, kind
):
    path = f"/{kind}s/{everything[kind].pk}"
    before = admin.get(path).data
    assert before["_links"]["user"] == {"href": f"/users/{nadia.pk}"}
    remove()
    for caller in (admin, support):
        answer = caller.get(path)
        assert answer.status == 200
        assert {**answer.data, "_links": None} == {**before, "_links": None}
        assert answer.data["user_id"] == nadia.pk
        assert answer.data["_links"] == {"self": {"href": path}}
        assert [item["id"] for item in caller.get(f"/{kind}s").data] == [everything[kind].pk]
    assert other.get(path).status == 404


@pytest.fixture
def administrator(make_user):
    return make_user("admin", password=PASSWORD)


def log(actor, row, text):
    return LogEntry.objects.create(
        user=actor,
        content_type=ContentType.objects.get_for_model(type(row)),
        object_id=str(row.pk),
        object_repr=text,
        action_flag=CHANGE,
        change_message="",
    )


def test_admin_log_entries_that_name_the_user_go(remove, nadia, everything, administrator):
    log(administrator, nadia, str(nadia))
    stays = log(administrator, everything["order"], str(everything["order"]))
    by_the_user = log(nadia, everything["order"], "2 × Book")
    remove()
    # What others wrote of the user names it, and goes at once.
    assert set(LogEntry.objects.values_list("pk", flat=True)) == {stays.pk, by_the_user.pk}
    browser = Client()
    browser.force_login(administrator)
    history = browser.get(f"/admin/orders/order/{everything['order'].pk}/history/")
    assert [entry.pk for entry in history.context["action_list"]] == [stays.pk]
    eraser.erase()
    assert list(LogEntry.objects.values_list("pk", flat=True)) == [stays.pk]


@pytest.mark.parametrize("door", ["single", "bulk"])
def test_removal_through_the_admin_leaves_no_name_in_its_log(nadia, administrator, everything, door):
    browser = Client(raise_request_exception=False)
    browser.force_login(administrator)
    if door == "single":
        answer = browser.post(f"/admin/users/user/{nadia.pk}/delete/", {"post": "yes"})
    else:
        form = {"action": "delete_selected", "_selected_action": [nadia.pk], "post": "yes"}
        answer = browser.post("/admin/users/user/", form)
    assert answer.status_code == 302
    row = User._base_manager.get(pk=nadia.pk)
    assert (row.name, row.email, row.password, row.removed_at is None) == ("", "", "", False)
    assert not LogEntry.objects.filter(object_repr__contains=NAME).exists()
    assert not LogEntry.objects.filter(object_repr__contains=EMAIL).exists()
    assert Order.objects.filter(user_id=nadia.pk).count() == 1
