"""Section 6: who may create, change and delete posts and comments, and which links tell so."""

import pytest

from config.api.principal import SCOPES
from posts.models import Comment, Post
from tests.conftest import with_key

ROLES = ["user", "support", "admin"]
BODIES = {"posts": {"title": "New"}, "comments": {"text": "New"}}


@pytest.fixture(params=BODIES)
def kind(request):
    return request.param


@pytest.fixture
def row_of(kind):
    """A post or a comment of an author."""

    def make(author):
        post = Post.objects.create(user=author, title="Old")
        return post if kind == "posts" else Comment.objects.create(post=post, user=author, text="Old")

    return make


@pytest.mark.parametrize("role", ["user", "support"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_refusal_of_a_change_names_the_field(kind, row_of, make_user, other, *, role, method):
    refused = with_key(make_user(role))(method, f"/{kind}/{row_of(other.user).pk}", BODIES[kind])
    assert (refused.status, refused.code) == (403, "FORBIDDEN")
    assert refused.fields == set(BODIES[kind])


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("target", ["own", "other"])
def test_links_tell_who_may_change(kind, row_of, make_user, other, *, role, target):
    caller = make_user(role)
    row = row_of(caller if target == "own" else other.user)
    links = set(with_key(caller).get(f"/{kind}/{row.pk}").data["_links"])
    assert ("user" in links) == (target == "own" or role != "user")
    if kind == "posts":
        assert ({"update", "delete"} <= links) == (target == "own" or role == "admin")
        assert links - {"user", "update", "delete"} == {"self", "comments"}


@pytest.mark.parametrize(("missing", "gone"), [("users:read", {"user"}), ("posts:write", {"update", "delete"})])
def test_link_that_needs_a_missing_scope_is_absent(user, missing, gone):
    post = Post.objects.create(user=user.user, title="Old")
    everything = set(user.get(f"/posts/{post.pk}").data["_links"])
    limited = with_key(user.user, set(SCOPES) - {missing})
    assert everything - set(limited.get(f"/posts/{post.pk}").data["_links"]) == gone


def test_author_of_the_post_does_not_change_the_comments_on_it(user, other):
    post = Post.objects.create(user=user.user, title="Old")
    comment = Comment.objects.create(post=post, user=other.user, text="Old")
    for method in ("PUT", "PATCH", "DELETE"):
        assert user(method, f"/comments/{comment.pk}", {"text": "New"}).status == 403, method
    assert other.get(f"/comments/{comment.pk}").data["text"] == "Old"
