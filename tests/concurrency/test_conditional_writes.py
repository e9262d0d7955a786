"""Writers that all know the same state of a resource, each on a connection of its own."""

from __future__ import annotations

from functools import partial

import pytest

from posts.models import Comment, Post
from tests.conftest import with_key

WRITERS = 20
ROUNDS = 5


@pytest.mark.parametrize("resource", ["users", "posts", "comments"])
def test_one_of_many_writers_with_the_same_tag_wins(at_once, make_user, resource):
    caller = with_key(make_user("admin"))
    post = Post.objects.create(user=caller.user, title="T")
    comment = Comment.objects.create(post=post, user=caller.user, text="T")
    path, field = {
        "users": (f"/users/{caller.user.pk}", "name"),
        "posts": (f"/posts/{post.pk}", "title"),
        "comments": (f"/comments/{comment.pk}", "text"),
    }[resource]
    tag = caller.get(path).headers["ETag"]
    answers = at_once(partial(caller.patch, path, {field: f"N{each}"}, if_match=tag) for each in range(WRITERS))
    assert sorted(answer.status for answer in answers) == [200] + [412] * (WRITERS - 1)
    (won,) = (answer for answer in answers if answer.status == 200)
    after = caller.get(path)
    assert after.data == won.data
    assert after.headers["ETag"] == won.headers["ETag"]


@pytest.mark.parametrize("resource", ["users", "posts"])
def test_replacement_and_deletion_with_the_same_tag_do_not_both_happen(at_once, make_user, resource):
    admin = with_key(make_user("admin"))
    for _ in range(ROUNDS):
        user = make_user()
        post = Post.objects.create(user=admin.user, title="T")
        path, body = {
            "users": (f"/users/{user.pk}", {"name": "New", "email": user.email}),
            "posts": (f"/posts/{post.pk}", {"title": "New"}),
        }[resource]
        tag = admin.get(path).headers["ETag"]
        answers = at_once([partial(admin.put, path, body, if_match=tag), partial(admin.delete, path, if_match=tag)])
        # What is gone is not found, whatever was asked of it.
        assert tuple(answer.status for answer in answers) in {(200, 412), (404, 204)}
        assert admin.get(path).status == (200 if answers[0].status == 200 else 404)


def test_tag_and_content_of_a_post_are_of_one_moment(at_once, make_user):
    """Read with the tag that a state has, the content is that of this state, whoever comments meanwhile."""
    author = with_key(make_user())
    path = f"/posts/{Post.objects.create(user=author.user, title='T').pk}"

    def comment() -> list[None]:
        for _ in range(10):
            assert author.post(f"{path}/comments", {"text": "c"}).status == 201
        return []

    def read() -> list[tuple[str, int, int]]:
        seen = []
        for _ in range(30):
            answer = author.get(path)
            state = answer.headers["ETag"].partition("-")[0]
            seen.append((state, answer.data["comments_count"], len(answer.data["comments"])))
        return seen

    seen = {one for answer in at_once([comment, read, read, read]) for one in answer}
    assert len({state for state, *_ in seen}) == len(seen)
    assert all(count == shown for _, count, shown in seen)
