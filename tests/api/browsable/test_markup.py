"""What users write is text on every page, and never markup."""

import html
import json
import re

import pytest

from config.api.browsable.highlighting import render_json, render_link
from orders.models import Order
from posts.models import Comment, Post
from tests.api.browsable.conftest import ada_token, shown_json
from tests.conftest import PASSWORD

NASTY = "<script>alert(1)</script>\"'&</pre></textarea><img src=x onerror=alert(1)>\u202e"
NASTY_EMAIL = '"<script>alert(1)</script>&"@example.com'


@pytest.fixture
def nasty(make_user):
    """A user with markup in every text."""
    user = make_user("admin", name=NASTY, email=NASTY_EMAIL, password=PASSWORD)
    Order.objects.create(user=user, item=NASTY, qty=1)
    post = Post.objects.create(user=user, title=NASTY, body=f"\n{NASTY}\n")
    Comment.objects.create(post=post, user=user, text=NASTY)
    return user


def test_markup_in_every_text_is_inert(nasty, signed_in, page_of):
    ask = signed_in(nasty)
    made = ask(
        "/api-keys", "POST", json.dumps({"name": NASTY}).encode(), "application/json", X_CSRFToken=ada_token(ask)
    )
    post, order, comment = Post.objects.get(), Order.objects.get(), Comment.objects.get()
    pages = [
        *(made, ask("/users"), ask(f"/users/{nasty.pk}"), ask("/api-keys"), ask("/orders"), ask(f"/orders/{order.pk}")),
        *(ask("/posts"), ask(f"/posts/{post.pk}"), ask(f"/posts/{post.pk}/comments"), ask(f"/comments/{comment.pk}")),
    ]
    for response in pages:
        text = response.content.decode()
        assert html.escape("<script>alert(1)</script>") in text
        assert NASTY in json.dumps(json.loads(shown_json(response)), ensure_ascii=False).replace('\\"', '"')
        page = page_of(response, response.status_code)
        assert [given for tag, given in page.tags if tag == "script"] == [
            {"src": f"/static/config/{name}.js", "defer": None} for name in ("key", "secret", "browsable")
        ]
        assert not [tag for tag, given in page.tags if tag == "img" or any(name.startswith("on") for name in given)]
    assert page_of(ask(f"/users/{nasty.pk}")).inputs["put-name"]["value"] == NASTY


def test_markup_in_addresses_and_names_is_inert(ada):
    for path in (
        "/%3Cscript%3Ealert(1)%3C/script%3E",
        "/users?sort=%3Cscript%3Ealert(1)%3C/script%3E%22%27&email=%22%3E%3Cscript%3E",
        "/users?fields=%22%3E%3Cscript%3E&version=1",
        "/users/%22%3E%3Cscript%3E/orders",
    ):
        text = ada(path).content.decode()
        assert "<script>" not in text, path
        assert '"><' not in re.sub(r'="[^"<>]*"><', "", text).replace('=""><', ""), path


@pytest.mark.parametrize("target", ["javascript:alert(1)", "//evil.example/", "data:text/html,x", "users"])
def test_no_link_leads_to_what_is_no_address(target):
    assert "<a" not in render_json(json.dumps({"href": target}, separators=(",", ":")))
    assert "<a" not in render_link(target)
