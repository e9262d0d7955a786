"""Who is about to remove rows reads what goes with them, what stays, and how much of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.services import create_api_key
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.admin.test_pages import signed_in
from tests.conftest import PASSWORD
from users.models import User

DELETED, KEPT = "deleted", "kept, without a name"


@pytest.fixture
def browser(make_user: Any) -> Client:
    return signed_in(make_user("admin", name="Chief", password=PASSWORD))


def read_effects(page: Any) -> dict[str, tuple[str, str]]:
    """The rows of the table on a confirmation: how many of each there are, and what becomes of them."""
    cells = r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td></tr>'
    return {name: (count, fate) for name, count, fate in re.findall(cells, page.content.decode())}


def fill(user: User, other: User) -> None:
    """Two posts, on one of them a comment of another user; two comments of their own, a key, an order, payments."""
    own = [Post.objects.create(user=user, title="Own", body="") for _ in range(2)]
    others = Post.objects.create(user=other, title="Of another", body="")
    for author, post in ((other, own[0]), (user, own[0]), (user, others), (other, others)):
        Comment.objects.create(user=author, post=post, text="A text")
    create_api_key(user, name="A key")
    Order.objects.create(user=user, item="Tea", qty=1)
    for _ in range(3):
        Payment.objects.create(user=user, amount="1.00")


def confirm(browser: Client, *users: User, selected: bool) -> Any:
    if not selected:
        return browser.get(f"/admin/users/user/{users[0].pk}/delete/")
    form = {"action": "delete_selected", "_selected_action": [str(user.pk) for user in users]}
    return browser.post("/admin/users/user/", form)


@pytest.mark.parametrize("selected", [False, True])
def test_confirmation_counts_what_goes_and_what_stays(browser, make_user, selected):
    user, other = make_user(name="Leaving"), make_user(name="Staying")
    fill(user, other)
    page = confirm(browser, user, selected=selected)
    assert page.status_code == 200
    effects = read_effects(page)
    expected = {
        "Posts": ("2", DELETED),
        "Comments": ("3", DELETED),
        "API keys": ("1", DELETED),
        "Orders": ("1", KEPT),
        "Payments": ("3", KEPT),
    }
    assert expected.items() <= effects.items()
    text = page.content.decode()
    assert "Name, email and password are wiped" in text
    assert "keys, tokens and sessions are refused" in text
    assert "Leaving" in text
    assert "Users: 1" not in text


def test_confirmation_of_several_counts_all_of_theirs(browser, make_user):
    users = [make_user(), make_user()]
    for user in users:
        fill(user, make_user())
    effects = read_effects(confirm(browser, *users, selected=True))
    assert effects["Posts"] == ("4", DELETED)
    assert effects["Payments"] == ("6", KEPT)


def test_post_is_removed_with_the_number_of_its_comments(browser, make_user):
    user = make_user()
    fill(user, make_user())
    post = Post.objects.filter(user=user).first()
    assert read_effects(browser.get(f"/admin/posts/post/{post.pk}/delete/")) == {"Comments": ("2", DELETED)}


def test_confirmed_removal_removes(browser, make_user):
    user, other = make_user(), make_user()
    assert browser.post(f"/admin/users/user/{user.pk}/delete/", {"post": "yes"}).status_code == 302
    form = {"action": "delete_selected", "_selected_action": [str(other.pk)], "post": "yes"}
    assert browser.post("/admin/users/user/", form).status_code == 302
    assert not User.objects.filter(pk__in=[user.pk, other.pk]).exists()
