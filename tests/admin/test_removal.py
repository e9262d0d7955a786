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
from users.models import User

DELETED, KEPT = "deleted", "kept, identified only by user ID"


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


def confirm(pages: Client, *users: User, selected: bool) -> Any:
    if not selected:
        return pages.get(f"/admin/users/user/{users[0].pk}/delete/")
    form = {"action": "delete_selected", "_selected_action": [str(user.pk) for user in users]}
    return pages.post("/admin/users/user/", form)


@pytest.mark.parametrize("selected", [False, True])
def test_confirmation_counts_what_goes_and_what_stays(pages, make_user, selected):
    user, other = make_user(name="Leaving"), make_user(name="Staying")
    fill(user, other)
    page = confirm(pages, user, selected=selected)
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
    assert "Name, email and password are erased" in text
    assert "keys, tokens and sessions stop working" in text
    assert "Leaving" in text
    assert "Users: 1" not in text


def test_post_is_removed_with_the_number_of_its_comments(pages, make_user):
    user = make_user()
    fill(user, make_user())
    post = Post.objects.filter(user=user).first()
    assert read_effects(pages.get(f"/admin/posts/post/{post.pk}/delete/")) == {"Comments": ("2", DELETED)}
