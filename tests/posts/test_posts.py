"""Posts: what they look like, who writes them, and what becomes of them."""

import pytest

from posts.models import Post
from tests.conftest import TIME

HELLO = {"title": "Hello", "body": "First\nline"}


@pytest.fixture
def post(user):
    return user.post(f"/users/{user.user.pk}/posts", HELLO).data


def path_of(row):
    return f"/posts/{row['id']}"


def test_post_has_exactly_the_fields_of_the_contract(user):
    created = user.post(f"/users/{user.user.pk}/posts", HELLO)
    assert created.status == 201
    post = created.data
    path = path_of(post)
    assert created.headers["Location"] == path
    assert TIME.fullmatch(post["created_at"])
    assert TIME.fullmatch(post["updated_at"])
    assert post == {
        "id": post["id"],
        "user_id": user.user.pk,
        **HELLO,
        "comments": [],
        "comments_count": 0,
        "created_at": post["created_at"],
        "updated_at": post["updated_at"],
        "_links": {
            "self": {"href": path},
            "comments": {"href": f"{path}/comments"},
            "user": {"href": f"/users/{user.user.pk}"},
            "update": {"href": path, "method": "PUT"},
            "delete": {"href": path, "method": "DELETE"},
        },
    }
    assert user.get(path).data == post
    del post["_links"]
    assert user.get("/posts").data == [post]
    assert user.get(f"/users/{user.user.pk}/posts").data == [post]


def test_post_without_body_has_an_empty_one(user):
    created = user.post(f"/users/{user.user.pk}/posts", {"title": "Hello"})
    assert (created.status, created.data["body"]) == (201, "")
    empty = user.post(f"/users/{user.user.pk}/posts", {"title": "Hello", "body": ""})
    assert (empty.status, empty.data["body"]) == (201, "")


@pytest.mark.parametrize("content_type", ["application/json", "application/merge-patch+json"])
def test_patch_merges(user, post, content_type):
    answer = user.patch(path_of(post), {"title": "New"}, content_type=content_type)
    assert (answer.status, answer.data["title"], answer.data["body"]) == (200, "New", HELLO["body"])
    answer = user.patch(path_of(post), {"body": None}, content_type=content_type)
    assert (answer.status, answer.data["title"], answer.data["body"]) == (200, "New", "")
    refused = user.patch(path_of(post), {"title": None}, content_type=content_type)
    assert (refused.status, refused.fields) == (400, {"title"})


def test_deleted_post_is_gone_with_its_comments(user, other, post):
    comment = other.post(f"{path_of(post)}/comments", {"text": "Hi"}).data
    assert user.delete(path_of(post)).status == 204
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert user(method, path_of(post), HELLO).status == 404, method
    assert other.get(f"/comments/{comment['id']}").status == 404
    assert other.get(f"{path_of(post)}/comments").status == 404
    assert other.post(f"{path_of(post)}/comments", {"text": "Hi"}).status == 404


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("user_id", ["removed", "999999999"])
def test_posts_of_nobody_are_not_found(admin, other, method, user_id):
    gone = other.user.pk
    assert admin.get(f"/users/{gone}/posts").status == 200
    assert admin.delete(f"/users/{gone}").status == 204
    answer = admin(method, f"/users/{gone if user_id == 'removed' else user_id}/posts", HELLO)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")
    assert not Post.objects.exists()
