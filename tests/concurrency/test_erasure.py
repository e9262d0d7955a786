"""Removals and erasures beside everybody else: nobody waits, and no row is counted twice."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from config.erasure import eraser
from config.models import Erasure
from posts.models import Comment, Post
from tests.conftest import find_wrong_counts, wait_until_somebody_waits_for, with_key
from users.models import User

ROUNDS = 3


def in_thread(call: Any) -> Thread:
    def run() -> None:
        try:
            call()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    return thread


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(eraser, "_FIRST_SIZE", 2)
    monkeypatch.setattr(eraser, "_MAX_SIZE", 2)


@pytest.fixture
def crossing(make_user, transactional_db):
    """Three users who have commented on all posts of each other."""
    users = [make_user() for _ in range(3)]
    posts = [Post.objects.create(user=user, title="T") for user in users for _ in range(4)]
    Comment.objects.bulk_create(Comment(post=post, user=user, text="x") for post in posts for user in users)
    return users, posts


def test_removal_beside_a_deletion_that_is_not_committed_counts_it_once(elsewhere, make_user, crossing):
    admin = with_key(make_user("admin"))
    users, posts = crossing
    elsewhere.execute("DELETE FROM posts_comment WHERE post_id = %s", [posts[0].pk])
    elsewhere.execute("DELETE FROM posts_post WHERE id = %s", [posts[0].pk])
    assert admin.delete(f"/users/{users[0].pk}").status == 204
    assert admin.get("/posts").meta["total"] == 8
    elsewhere.commit()
    assert find_wrong_counts() == []
    assert admin.get("/posts").meta["total"] == 8
    assert eraser.erase() == 1
    assert find_wrong_counts() == []


def test_erasures_writers_and_removals_that_cross_do_not_fail(at_once, make_user, small_steps):
    admin = with_key(make_user("admin"))
    for _ in range(ROUNDS):
        users = [make_user() for _ in range(3)]
        stays = with_key(make_user())
        posts = [Post.objects.create(user=user, title="T") for user in (*users, stays.user) for _ in range(4)]
        own = [post.pk for post in posts if post.user_id == stays.user.pk]
        everybody = [*users, stays.user]
        Comment.objects.bulk_create(Comment(post=post, user=user, text="x") for post in posts for user in everybody)
        before = {pk: stays.get(f"/posts/{pk}").data["comments_count"] for pk in own}
        assert set(before.values()) == {4}
        done = Event()

        def erase(done: Event = done) -> str:
            while not done.is_set() or Erasure.objects.exists():
                eraser.erase(rest=0)
            return "erased"

        def write(done: Event = done, own: Any = own, stays: Any = stays, users: Any = users) -> list[int]:
            statuses = [admin.delete(f"/users/{user.pk}").status for user in users]
            for pk in own:
                statuses.append(stays.post(f"/posts/{pk}/comments", {"text": "y"}).status)
                statuses.append(stays.patch(f"/posts/{pk}", {"title": "U"}).status)
                statuses.append(stays.delete(f"/comments/{stays.get(f'/posts/{pk}').data['comments'][0]['id']}").status)
            done.set()
            return statuses

        # Of two erasers one at a time has a batch.
        *_, statuses = at_once([erase, erase, write])
        assert statuses == [204, 204, 204] + [201, 200, 204] * 4
        for pk in own:
            post = stays.get(f"/posts/{pk}").data
            assert (post["comments_count"], len(post["comments"])) == (1, 1)
        assert not Post._base_manager.filter(user__in=users).exists()
        assert not Comment._base_manager.filter(user__in=users).exists()
        assert find_wrong_counts() == []


def test_conditional_write_is_not_refused_because_a_hidden_comment_is_erased(elsewhere, make_user, transactional_db):
    admin, writer = with_key(make_user("admin")), with_key(make_user())
    post, leaving = Post.objects.create(user=writer.user, title="T"), make_user()
    Comment.objects.bulk_create(Comment(post=post, user=leaving, text="x") for _ in range(3))
    assert admin.delete(f"/users/{leaving.pk}").status == 204
    tag = writer.get(f"/posts/{post.pk}").response["ETag"]
    elsewhere.execute("DELETE FROM posts_comment WHERE user_id = %s", [leaving.pk])
    answers: list[Any] = []
    writing = in_thread(lambda: answers.append(writer.patch(f"/posts/{post.pk}", {"title": "U"}, if_match=tag)))
    wait_until_somebody_waits_for(elsewhere)
    elsewhere.commit()
    writing.join()
    assert (answers[0].status, answers[0].data["comments_count"]) == (200, 0)


def test_removal_does_not_wait_for_another_that_is_not_committed(elsewhere, make_user, transactional_db):
    admin, pair = with_key(make_user("admin")), [make_user() for _ in range(2)]
    elsewhere.execute("SELECT FROM users_user WHERE id = %s FOR UPDATE", [pair[0].pk])
    elsewhere.execute("INSERT INTO config_erasure (user_id) VALUES (%s)", [pair[0].pk])
    assert admin.delete(f"/users/{pair[1].pk}").status == 204
    elsewhere.rollback()
    assert User.objects.filter(pk=pair[0].pk).exists()
