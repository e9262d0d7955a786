"""Two requests at once, each on a connection of its own."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from config.erasure import eraser
from config.events.webhooks.views import MAX_WEBHOOKS
from config.models import Webhook
from posts.models import Comment, Post
from tests.conftest import with_key
from users.models import User

ROUNDS = 5


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_the_last_two_administrators_cannot_leave_together(at_once, make_user, method):
    for _ in range(ROUNDS):
        User.objects.filter(role="admin").update(role="user")
        pair = [with_key(make_user("admin")) for _ in range(2)]
        answers = at_once(
            partial(caller, method, f"/users/{caller.user.pk}", {"status": "inactive"}) for caller in pair
        )
        assert sorted(answer.status for answer in answers) in ([200, 409], [204, 409]), answers
        assert User.objects.administrators().count() == 1


def test_one_of_several_sign_ups_gets_the_email(at_once, make_user):
    admin = with_key(make_user("admin"))
    answers = at_once(
        partial(admin.post, "/users", {"name": "N", "email": email})
        for email in ("same@example.com", "Same@Example.com", "SAME@example.com", "same@EXAMPLE.com")
    )
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    assert {frozenset(answer.fields) for answer in answers if answer.status == 409} == {frozenset({"email"})}


def test_a_user_has_as_many_webhooks_as_the_limit_says_however_they_are_made(at_once, make_user):
    caller = with_key(make_user())
    body = {"url": "https://example.com/hook", "types": ["order.created"]}
    answers = at_once([partial(caller.post, "/webhooks", body)] * 40)
    assert Counter(answer.status for answer in answers) == {201: MAX_WEBHOOKS, 409: 40 - MAX_WEBHOOKS}
    assert Webhook.objects.count() == MAX_WEBHOOKS


def test_writes_to_different_fields_of_a_row_are_both_kept(at_once, make_user):
    caller = with_key(make_user("admin"))
    for round_ in range(ROUNDS):
        answers = at_once(
            [
                partial(caller.patch, f"/users/{caller.user.pk}", {"name": f"N{round_}"}),
                partial(caller.patch, f"/users/{caller.user.pk}", {"email": f"e{round_}@example.com"}),
            ]
        )
        assert [answer.status for answer in answers] == [200, 200]
        caller.user.refresh_from_db()
        assert (caller.user.name, caller.user.email) == (f"N{round_}", f"e{round_}@example.com")


def test_the_comments_of_a_post_are_counted_exactly(at_once, make_user):
    author = make_user()
    post = Post.objects.create(user=author, title="T")
    callers = [with_key(make_user()) for _ in range(6)]
    answers = at_once(partial(caller.post, f"/posts/{post.pk}/comments", {"text": "c"}) for caller in callers)
    assert {answer.status for answer in answers} == {201}
    post.refresh_from_db()
    assert (post.comments_count, post.row_version) == (6, 7)


def test_nothing_of_a_user_outlives_a_removal_that_races_its_writes(at_once, make_user):
    for _ in range(ROUNDS):
        author, admin = with_key(make_user()), with_key(make_user("admin"))
        post = Post.objects.create(user=make_user(), title="T")
        answers = at_once(
            [
                partial(author.post, f"/users/{author.user.pk}/posts", {"title": "late"}),
                partial(author.post, f"/posts/{post.pk}/comments", {"text": "late"}),
                partial(admin.delete, f"/users/{author.user.pk}"),
            ]
        )
        assert answers[2].status == 204
        assert {answers[0].status, answers[1].status} <= {201, 401, 404}
        assert eraser.erase() == 1
        assert not Post._base_manager.filter(user_id=author.user.pk).exists()
        assert not Comment._base_manager.filter(user_id=author.user.pk).exists()
        post.refresh_from_db()
        assert post.comments_count == 0


def test_a_comment_that_races_the_end_of_its_post_is_there_or_not_found(at_once, make_user):
    for _ in range(ROUNDS):
        author = with_key(make_user())
        post = Post.objects.create(user=author.user, title="T")
        answers = at_once(
            [
                partial(author.post, f"/posts/{post.pk}/comments", {"text": "late"}),
                partial(author.delete, f"/posts/{post.pk}"),
            ]
        )
        assert answers[0].status in {201, 404}
        assert answers[1].status == 204
        assert not Comment.objects.exists()


def test_comment_that_races_the_removal_of_the_posts_owner_is_there_or_not_found(at_once, make_user):
    admin, writer = with_key(make_user("admin")), with_key(make_user())
    for _ in range(ROUNDS):
        owner = make_user()
        posts = [Post.objects.create(user=owner, title="T") for _ in range(3)]
        answers = at_once(
            [partial(writer.post, f"/posts/{post.pk}/comments", {"text": "late"}) for post in posts]
            + [partial(admin.delete, f"/users/{owner.pk}")]
        )
        assert answers[-1].status == 204
        assert {answer.status for answer in answers[:-1]} <= {201, 404}
        assert not Comment.objects.exists()
        assert eraser.erase() == 1
        assert not Comment._base_manager.exists()


def test_order_for_a_user_who_is_being_removed_is_there_before_or_refused(at_once, make_user):
    admin = with_key(make_user("admin"))
    for _ in range(ROUNDS):
        user = make_user()
        ordered, removed = at_once(
            [
                partial(admin.post, "/orders", {"item": "x", "qty": 1, "user_id": user.pk}),
                partial(admin.delete, f"/users/{user.pk}"),
            ]
        )
        assert (ordered.status, removed.status) in {(201, 204), (400, 204)}
