"""Comments, on their own and inside their post."""

import pytest

from posts.models import Comment, Post
from tests.conftest import TIME


@pytest.fixture
def post(user):
    return Post.objects.create(user=user.user, title="Hello")


@pytest.fixture
def comment_on(post):
    """Comments on a post, by whom, through the API."""

    def write(caller, text="Hi", on=post):
        answer = caller.post(f"/posts/{on.pk}/comments", {"text": text})
        assert answer.status == 201, answer
        return answer.data

    return write


@pytest.fixture
def read(post, user):
    return lambda: user.get(f"/posts/{post.pk}").data


def version(post):
    return Post.objects.values_list("row_version", flat=True).get(pk=post.pk)


def test_comment_has_exactly_the_fields_of_the_contract(post, other):
    created = other.post(f"/posts/{post.pk}/comments", {"text": "Well\nwritten"})
    assert created.status == 201
    comment = created.data
    path = f"/comments/{comment['id']}"
    assert created.headers["Location"] == path
    assert TIME.fullmatch(comment["created_at"])
    assert TIME.fullmatch(comment["updated_at"])
    assert set(comment) == {"id", "post_id", "user_id", "text", "created_at", "updated_at", "_links"}
    assert (comment["post_id"], comment["user_id"], comment["text"]) == (post.pk, other.user.pk, "Well\nwritten")
    assert other.get(path).data == comment
    del comment["_links"]
    assert other.get(f"/posts/{post.pk}/comments").data == [comment]
    assert other.get(f"/posts/{post.pk}").data["comments"] == [comment]
    assert other.get("/posts").data[0]["comments"] == [comment]


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1"])
def test_comment_links_are_those_of_the_contract(post, other, prefix):
    created = other.post(f"{prefix}/posts/{post.pk}/comments", {"text": "Hi"})
    path = f"{prefix}/comments/{created.data['id']}"
    assert created.headers["Location"] == path
    assert other.get(path).data["_links"] == {
        "self": {"href": path},
        "user": {"href": f"{prefix}/users/{other.user.pk}"},
        "post": {"href": f"{prefix}/posts/{post.pk}"},
    }


def test_first_comments_are_embedded_oldest_first(post, other, user):
    ids = [
        row.pk for row in Comment.objects.bulk_create(Comment(post=post, user=other.user, text="x") for _ in range(25))
    ]
    single = user.get(f"/posts/{post.pk}").data
    assert [comment["id"] for comment in single["comments"]] == ids[:20]
    assert single["comments_count"] == 25
    for path in ("/posts", f"/users/{user.user.pk}/posts", "/posts?sort=id&order=desc"):
        (listed,) = user.get(path).data
        assert [comment["id"] for comment in listed["comments"]] == ids[:3], path
        assert listed["comments_count"] == 25
    assert "_links" not in single["comments"][0]


def test_each_post_of_a_list_has_its_own_comments(post, comment_on, user, other):
    second, silent = (Post.objects.create(user=other.user, title=title) for title in ("Second", "Silent"))
    texts = {post.pk: ["1", "2"], second.pk: ["3"], silent.pk: []}
    for text, on in (("1", post), ("3", second), ("2", post)):
        comment_on(user, text, on)
    listed = user.get("/posts").data
    assert {item["id"]: [comment["text"] for comment in item["comments"]] for item in listed} == texts
    assert {item["id"]: item["comments_count"] for item in listed} == {key: len(value) for key, value in texts.items()}


def test_list_of_comments_holds_those_of_its_post_only(post, comment_on, user, other):
    elsewhere = Post.objects.create(user=other.user, title="Elsewhere")
    first, _, third = comment_on(user, "1"), comment_on(user, "2", elsewhere), comment_on(other, "3")
    listed = user.get(f"/posts/{post.pk}/comments")
    assert [item["id"] for item in listed.data] == [first["id"], third["id"]]
    assert listed.meta["total"] == 2


def test_comments_count_follows_creation_and_deletion(comment_on, read, user, other):
    assert read()["comments_count"] == 0
    first, second = comment_on(user), comment_on(other)
    assert read()["comments_count"] == 2
    assert other.delete(f"/comments/{second['id']}").status == 204
    assert read()["comments_count"] == 1
    assert user.delete(f"/comments/{first['id']}").status == 204
    assert (read()["comments_count"], read()["comments"]) == (0, [])


def test_version_of_the_post_moves_with_its_comments_and_updated_at_does_not(comment_on, read, post, other):
    before, versions = read(), [version(post)]
    comment = comment_on(other)
    versions.append(version(post))
    assert other.patch(f"/comments/{comment['id']}", {"text": "Better"}).status == 200
    versions.append(version(post))
    assert other.delete(f"/comments/{comment['id']}").status == 204
    versions.append(version(post))
    assert versions == sorted(set(versions))
    assert read() == before


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("post_id", ["0", "999999999", "9223372036854775808", "x"])
def test_comments_on_no_post_are_not_found(user, method, post_id):
    answer = user(method, f"/posts/{post_id}/comments", {"text": "Hi"})
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


def test_deleted_comment_is_gone(comment_on, other):
    path = f"/comments/{comment_on(other)['id']}"
    assert other.delete(path).status == 204
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert other(method, path, {"text": "Hi"}).status == 404, method


def test_comment_that_is_moved_counts_in_its_new_post(user):
    before, after = (Post.objects.create(user=user.user, title="T") for _ in range(2))
    comment = Comment.objects.create(user=user.user, post=before, text="x")
    Comment.objects.filter(pk=comment.pk).update(post=after)
    before.refresh_from_db()
    after.refresh_from_db()
    assert (before.comments_count, before.row_version) == (0, 3)
    assert (after.comments_count, after.row_version) == (1, 2)
