"""Long content is digested and coded where that delays no other request."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from config.http import request_state
from config.http.etags import MAX_SHORT_CODED_CONTENT, MAX_SHORT_CONTENT
from config.http.lanes import NeedsSlowLane
from config.http.request_state import RequestState
from posts.models import Comment, Post
from tests.conftest import Caller

MAX_BODY = 20_000
GZIP = {"accept_encoding": "gzip"}
LONG, VERY_LONG = MAX_SHORT_CODED_CONTENT // MAX_BODY + 1, MAX_SHORT_CONTENT // MAX_BODY + 1


@contextmanager
def fast_lane() -> Iterator[None]:
    with patch.object(request_state, "RequestState", partial(RequestState, in_fast_lane=True)):
        yield


def write_posts(user: Any, count: int) -> str:
    """Writes posts as long as one may be. Returns the address of all of them."""
    Post.objects.bulk_create(Post(user=user, title="A title", body="x" * MAX_BODY) for _ in range(count))
    return f"/users/{user.pk}/posts?limit=100"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("count", "headers"), [(LONG, GZIP), (VERY_LONG, {})], ids=["coded", "plain"])
def test_long_content_of_a_read_leaves_the_fast_lane(
    user: Caller, method: str, count: int, headers: dict[str, str]
) -> None:
    path = write_posts(user.user, count)
    with fast_lane(), pytest.raises(NeedsSlowLane):
        user.fetch(method, path, **headers)
    answer = user.fetch(method, path, **headers)
    assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, headers.get("accept_encoding"))


@pytest.mark.parametrize(("count", "headers"), [(LONG - 1, GZIP), (LONG, {}), (VERY_LONG - 1, {})])
def test_shorter_content_stays_in_the_fast_lane(user: Caller, count: int, headers: dict[str, str]) -> None:
    # Beside the body, a post takes some hundred bytes.
    path = write_posts(user.user, count - 1)
    with fast_lane():
        assert user.fetch("GET", path, **headers).status_code == 200


def test_not_modified_is_found_in_the_slow_lane_alone(user: Caller) -> None:
    path = write_posts(user.user, VERY_LONG)
    tag = user.fetch("GET", path).headers["ETag"]
    with fast_lane(), pytest.raises(NeedsSlowLane):
        user.fetch("GET", path, if_none_match=tag)
    assert user.fetch("GET", path, if_none_match=tag).status_code == 304


def test_long_content_of_a_write_is_not_coded_in_the_fast_lane(user: Caller) -> None:
    """It is written: it can't be run again."""
    post = Post.objects.create(user=user.user, title="A title", body="x" * MAX_BODY)
    text = "".join(random.Random(1).choices("𐀀𐀁𐀂𐀃", k=5_000))  # noqa: S311 - no secret
    Comment.objects.bulk_create(Comment(user=user.user, post=post, text=text) for _ in range(20))
    with fast_lane():
        plain = user.fetch("PATCH", f"/posts/{post.pk}", {"title": "Another"}, **GZIP)
    assert (plain.status_code, plain.headers.get("Content-Encoding")) == (200, None)
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert plain.headers["ETag"] == user.fetch("GET", f"/posts/{post.pk}").headers["ETag"]
    assert json.loads(plain.content)["data"]["title"] == "Another"
    coded = user.fetch("PATCH", f"/posts/{post.pk}", {"title": "Another"}, **GZIP)
    assert gzip.decompress(coded.content) == plain.content
