"""What somebody else saved since a change form was opened is never overwritten unseen."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.db import models

from accounts.models import Application
from posts.models import Comment, Post
from tests.accounts.oauth.actors import register
from tests.conftest import signed_in
from users.models import User

Row = models.Model
REFUSAL = "This {} was changed after you opened this page. Nothing was saved."


def make_post(user: User) -> Post:
    return Post.objects.create(user=user, title="Before", body="First line\nSecond line")


def make_comment(user: User) -> Comment:
    return Comment.objects.create(user=user, post=make_post(user), text="Before")


def make_application(user: User) -> Application:
    return register(name="Before", owner=user).row


# Of each model with a change form: how a row is made, a column, and a value that somebody else saves.
FORMS: dict[str, tuple[Callable[[User], Row], str, object]] = {
    "users/user": (lambda user: user, "name", "Theirs"),
    "posts/post": (make_post, "title", "Theirs"),
    "posts/comment": (make_comment, "text", "Theirs"),
    "accounts/application": (make_application, "allowed_scopes", ["orders:read"]),
}


def read_form(page: Any) -> dict[str, Any]:
    """What a browser would send of the form that a page shows, the hidden fields too."""
    form = page.context["adminform"].form
    sent = {
        name: "" if (value := form[name].value()) is None else value
        for name, field in form.fields.items()
        if not field.disabled
    }
    hidden = re.search(r'<input type="hidden" name="_version" value="([^"]*)">', page.content.decode())
    assert hidden, "the form does not say of which version of the row it is"
    return sent | {"_version": unescape(hidden[1])}


def get_text(page: Any) -> str:
    return unescape(page.content.decode())


def test_form_is_refused_until_it_shows_what_somebody_else_saved(pages, make_user):
    user = make_user(name="Old name", email="old@example.com")
    path = f"/admin/users/user/{user.pk}/change/"
    first, second = read_form(pages.get(path)), read_form(pages.get(path))
    assert pages.post(path, first | {"name": "New name"}).status_code == 302

    refused = pages.post(path, second | {"email": "new@example.com"}, follow=True)
    assert REFUSAL.format("user") in get_text(refused)
    user.refresh_from_db()
    assert (user.name, user.email) == ("New name", "old@example.com")

    again = read_form(refused)
    assert again["name"] == "New name"
    assert REFUSAL.format("user") not in get_text(pages.post(path, again | {"email": "new@example.com"}, follow=True))
    user.refresh_from_db()
    assert (user.name, user.email) == ("New name", "new@example.com")


@pytest.mark.parametrize("form", FORMS)
def test_change_form_refuses_to_overwrite(pages, make_user, form):
    make, column, theirs = FORMS[form]
    row = make(make_user("user"))
    path = f"/admin/{form}/{row.pk}/change/"
    opened, other = read_form(pages.get(path)), read_form(pages.get(path))
    pages.post(path, other | {column: theirs})
    before = type(row)._default_manager.filter(pk=row.pk).values().get()
    assert before[column] == theirs
    refused = pages.post(path, opened, follow=True)
    assert REFUSAL.format(row._meta.verbose_name) in get_text(refused)
    assert type(row)._default_manager.filter(pk=row.pk).values().get() == before


@pytest.mark.parametrize("form", FORMS)
def test_form_of_the_present_version_is_saved(pages, make_user, form):
    make, _, _ = FORMS[form]
    row = make(make_user("user"))
    path = f"/admin/{form}/{row.pk}/change/"
    before = type(row)._default_manager.filter(pk=row.pk).values().get()
    for _ in range(2):
        opened = read_form(pages.get(path))
        # Browsers submit each line break as CR LF.
        sent = {
            name: value.replace("\n", "\r\n") if isinstance(value, str) else value for name, value in opened.items()
        }
        assert pages.post(path, sent).status_code == 302
    after = type(row)._default_manager.filter(pk=row.pk).values().get()
    assert {name for name in before if before[name] != after[name]} <= {"updated"}


def test_comment_added_meanwhile_is_no_conflict_of_its_post(pages, make_user):
    post = make_post(make_user())
    path = f"/admin/posts/post/{post.pk}/change/"
    opened = read_form(pages.get(path))
    Comment.objects.create(user=post.user, post=post, text="Meanwhile")
    assert pages.post(path, opened | {"title": "After"}).status_code == 302
    post.refresh_from_db()
    assert (post.title, post.comments_count) == ("After", 1)


@pytest.mark.parametrize("version", ["\0", "", "2026", "x" * 100_000])
def test_version_that_no_page_made_is_refused_without_an_error(pages, make_user, version):
    user = make_user(name="Old")
    path = f"/admin/users/user/{user.pk}/change/"
    opened = read_form(pages.get(path))
    refused = pages.post(path, opened | {"name": "New", "_version": version}, follow=True)
    assert REFUSAL.format("user") in get_text(refused)
    user.refresh_from_db()
    assert user.name == "Old"


def test_of_two_forms_saved_at_once_one_is_refused(chief, make_user, at_once):
    user = make_user(name="Old", email="old@example.com")
    path = f"/admin/users/user/{user.pk}/change/"
    browsers = [signed_in(chief) for _ in range(4)]
    opened = [read_form(browser.get(path)) for browser in browsers]
    changes = [{"name": f"Name {number}"} for number in range(4)]
    posts = [
        partial(browser.post, path, form | change)
        for browser, form, change in zip(browsers, opened, changes, strict=True)
    ]
    assert [answer.status_code for answer in at_once(posts)] == [302] * 4
    refused = [REFUSAL.format("user") in get_text(browser.get(path)) for browser in browsers]
    assert sorted(refused) == [False, True, True, True]
    user.refresh_from_db()
    assert user.name == changes[refused.index(False)]["name"]


def test_external_id_that_is_left_empty_is_none_of_any_user(pages, make_user):
    for user in (make_user(), make_user()):
        path = f"/admin/users/user/{user.pk}/change/"
        opened = read_form(pages.get(path))
        assert pages.post(path, opened | {"name": "Renamed"}).status_code == 302
        user.refresh_from_db()
        assert (user.name, user.external_id) == ("Renamed", None)
