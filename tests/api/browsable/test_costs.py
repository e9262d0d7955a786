"""What a page costs beside the JSON of the same address."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from posts.models import Comment, Post
from tests.api.browsable.conftest import HTML
from tests.api.wire import measure_least


def queries(ask, path, accept):
    with CaptureQueriesContext(connection) as captured:
        assert ask(path, Accept=accept).status_code in {200, 405}
    return len(captured)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/api/v2/users", 0),
        ("/api/v2/users/{0}", 0),
        ("/api/v2/orders", 0),
        ("/api/v2/posts", 0),
        ("/api/v2/posts/{1}", 0),
        ("/api/v2/api-keys", 0),
        # The parent decides who may create there.
        ("/api/v2/users/{0}/posts", 1),
        ("/api/v2/posts/{1}/comments", 1),
        # The user of the session, whom the view does not need.
        ("/api/v2/versions", 0),
        ("/health/live", 2),
    ],
)
def test_page_takes_the_queries_of_its_json_and_a_constant(ada, uma, path, more):
    post = Post.objects.create(user=uma, title="Title")
    path = path.format(uma.pk, post.pk)
    ada(path)
    assert queries(ada, path, HTML) - queries(ada, path, "application/json") == more


def test_page_of_a_hundred_posts_is_quickly_made(ada, uma):
    for post in Post.objects.bulk_create(Post(user=uma, title="<b>Title</b>", body="x" * 200) for _ in range(100)):
        Comment.objects.bulk_create(Comment(post=post, user=uma, text="Text") for _ in range(3))
    assert ada("/posts?limit=100").status_code == 200
    # Less than 0.1 s on cores of its own, and up to half as much again beside another test on the same core.
    assert measure_least(lambda: ada("/posts?limit=100")) < 0.15
