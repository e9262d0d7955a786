"""Long content is digested and coded where that delays no other request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from config.http.blocking import BlockingBackend, get_blocking_backend
from config.http.etags import MAX_SHORT_CODED_CONTENT, MAX_SHORT_CONTENT
from posts.models import Post
from tests.conftest import Caller

MAX_BODY = 20_000
GZIP = {"accept_encoding": "gzip"}
LONG, VERY_LONG = MAX_SHORT_CODED_CONTENT // MAX_BODY + 1, MAX_SHORT_CONTENT // MAX_BODY + 1


class Recorder(BlockingBackend):
    """Counts what is run beside the loop."""

    count = 0

    def run(self, function: Callable[[], Any]) -> Any:
        self.count += 1
        return super().run(function)


def write_posts(user: Any, count: int) -> str:
    """Writes posts as long as one may be. Returns the address of all of them."""
    Post.objects.bulk_create(Post(user=user, title="A title", body="x" * MAX_BODY) for _ in range(count))
    return f"/users/{user.pk}/posts?limit=100"


# Beside the body, a post takes some hundred bytes.
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("count", "headers", "beside"),
    [(LONG, GZIP, 2), (LONG - 2, GZIP, 0), (LONG, {}, 0), (VERY_LONG, {}, 1), (VERY_LONG - 2, {}, 0)],
)
def test_long_content_is_digested_and_coded_beside_the_loop(
    user: Caller, method: str, count: int, headers: dict[str, str], beside: int
) -> None:
    path = write_posts(user.user, count)
    recorder = Recorder()
    with patch("config.http.etags.get_blocking_backend", return_value=recorder):
        answer = user.fetch(method, path, **headers)
    assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, headers.get("accept_encoding"))
    assert recorder.count == beside


def test_answer_is_the_same_whichever_thread_makes_it(user: Caller) -> None:
    path = write_posts(user.user, VERY_LONG)
    get_blocking_backend.cache_clear()
    plain, coded = user.fetch("GET", path), user.fetch("GET", path, **GZIP)
    assert json.loads(gzip.decompress(coded.content)) == json.loads(plain.content)
    assert user.fetch("GET", path, if_none_match=plain.headers["ETag"]).status_code == 304
