"""What is seen from the removal of a user on is what is left when its rows are erased, whichever way one looks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from typing import Any

import pytest

from config.api.listing import keyset
from config.erasure import eraser
from config.postgresql import row_counts
from config.postgresql.row_counts import NARROW, WIDE
from posts.models import Comment, Post
from tests.conftest import Answer, Caller, find_wrong_counts, with_key
from users import services

SORTS = ["id", "title", "created_at"]
# Within a block, around the edges of both sizes of blocks, and far away.
EDGES = [10, 2**NARROW, 2**WIDE, 2**WIDE + 2**NARROW, 2**WIDE * 3]


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(eraser, "_FIRST_SIZE", 3)
    monkeypatch.setattr(eraser, "_MAX_SIZE", 3)
    monkeypatch.setattr(eraser, "_IDS", 5)


@pytest.fixture
def world(make_user, transactional_db):
    """Posts of three users in turn, comments of everybody on everything; two of the users are to be removed."""
    users = [make_user() for _ in range(3)]
    ids = [edge + number for edge in EDGES for number in range(-3, 3)]
    posts = Post.objects.bulk_create(
        Post(pk=pk, user=users[number % 3], title=f"T{number % 5}") for number, pk in enumerate(ids)
    )
    numbers = count()
    Comment.objects.bulk_create(
        Comment(post=post, user=users[next(numbers) % 3], text="x") for post in posts for _ in range(post.pk % 6)
    )
    return users, posts


def summarize(answer: Answer) -> tuple[object, ...]:
    return answer.status, answer.headers.get("ETag"), "data" in answer.body and answer.body


def look(caller: Caller, posts: list[Post]) -> dict[str, Any]:
    """All that can be seen of posts and comments, in every way."""
    seen: dict[str, Any] = {}
    queries = [f"sort={sort}&order={order}" for sort, order in product(SORTS, ("asc", "desc"))]
    lists = {path for post in posts for path in (f"/users/{post.user_id}/posts", f"/posts/{post.pk}/comments?limit=2")}
    for near in (0, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keyset, "MAX_NEAR_OFFSET", near)
            for query, offset in product(queries, range(0, len(posts) + 5, 5)):
                path = f"/posts?{query}&limit=5&offset={offset}"
                seen[f"{path} {near}"] = summarize(caller.get(path))
    for path in lists:
        seen[path] = summarize(caller.get(path))
    for query in queries:
        seen[query] = list(walk(caller, query))
    for post in posts:
        seen[f"/posts/{post.pk}"] = summarize(caller.get(f"/posts/{post.pk}"))
    for pk in Comment._base_manager.values_list("pk", flat=True):
        seen[f"/comments/{pk}"] = caller.get(f"/comments/{pk}").status
    return seen


def walk(caller: Caller, query: str) -> Iterator[list[int]]:
    cursor = ""
    while cursor is not None:
        page = caller.get(f"/posts?{query}&limit=4&cursor={cursor}")
        yield [row["id"] for row in page.data]
        cursor = page.meta["nextCursor"]
    cursor = page.meta["prevCursor"]
    while cursor is not None:
        page = caller.get(f"/posts?{query}&limit=4&cursor={cursor}")
        yield [row["id"] for row in page.data]
        cursor = page.meta["prevCursor"]


def test_everything_looks_the_same_before_during_and_after_the_erasure(admin, world, small_steps):
    (one, two, stays), posts = world
    reader = with_key(stays)
    for user in (one, two):
        assert admin.delete(f"/users/{user.pk}").status == 204
    first = look(reader, posts)
    page = first["/posts?sort=id&order=asc&limit=5&offset=0 0"][-1]
    assert {row["user_id"] for row in page["data"]} == {stays.pk}
    assert page["meta"]["total"] == sum(post.user_id == stays.pk for post in posts)
    batches = 0

    def look_again() -> bool:
        nonlocal batches
        batches += 1
        if batches % 18 == 0:
            now = look(reader, posts)
            # An erased comment is not asked for any more.
            assert now == {path: first[path] for path in now}
            assert find_wrong_counts() == []
        return False

    assert eraser.erase(rest=0, is_stopped=look_again) == 2
    assert batches > 20
    last = look(reader, posts)
    assert last == {path: first[path] for path in last}
    assert {path for path in first.keys() - last.keys() if first[path] != 404} == set()
    assert not Post._base_manager.exclude(user=stays).exists()
    assert find_wrong_counts() == []


def test_totals_of_the_dashboard_leave_out_what_is_still_to_be_erased(admin, world):
    users, posts = world
    admin.delete(f"/users/{users[0].pk}")
    expected = [({}, sum(post.user_id != users[0].pk for post in posts))]
    assert row_counts.fetch_totals()[Post] == expected
    eraser.erase()
    assert row_counts.fetch_totals()[Post] == expected


def test_administrators_see_in_the_admin_what_readers_see(admin, world, make_user, client):
    users, posts = world
    client.force_login(make_user("admin"))
    admin.delete(f"/users/{users[0].pk}")
    listed = client.get("/admin/posts/post/").context["cl"]
    assert listed.result_count == sum(post.user_id != users[0].pk for post in posts)
    hidden = next(post for post in posts if post.user_id == users[0].pk)
    assert client.get(f"/admin/posts/post/{hidden.pk}/change/").status_code == 302


def test_erasure_that_is_killed_between_two_batches_is_finished_by_another_process(admin, world, small_steps):
    users, _ = world
    admin.delete(f"/users/{users[0].pk}")
    admin.delete(f"/users/{users[1].pk}")
    batches = count()

    def kill() -> bool:
        if next(batches) == 12:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        eraser.erase(is_stopped=kill)
    assert Post._base_manager.filter(user__in=users[:2]).exists()
    assert eraser.erase() == 2
    assert not Post._base_manager.filter(user__in=users[:2]).exists()
    assert find_wrong_counts() == []


def test_erasure_leaves_the_batches_to_another_that_is_at_one(admin, world, elsewhere):
    users, _ = world
    admin.delete(f"/users/{users[0].pk}")
    elsewhere.execute("SELECT pg_advisory_xact_lock(%s)", [eraser._LOCK])
    assert eraser.erase() == 0
    elsewhere.rollback()
    assert eraser.erase() == 1


def test_erasure_that_is_asked_to_stop_leaves_the_rest_to_the_next_at_once(admin, world, small_steps):
    users, _ = world
    admin.delete(f"/users/{users[0].pk}")
    batches = count()
    assert eraser.erase(is_stopped=lambda: next(batches) == 5) == 0
    assert eraser.erase() == 1


def test_rows_of_other_tables_are_erased_in_the_order_of_their_foreign_keys(make_user, db):
    """Of OAuth, whose tokens refer to each other."""
    from oauth2_provider.models import get_access_token_model, get_refresh_token_model

    from tests.accounts.oauth.actors import register

    owner, grantee = make_user("admin"), make_user()
    application = register().row
    application.owner = owner
    application.save()
    access = get_access_token_model().objects.create(
        user=grantee, application=application, token="t", expires="2030-01-01T00:00:00Z", scope=""
    )
    get_refresh_token_model().objects.create(user=grantee, application=application, token="r", access_token=access)
    make_user("admin")
    services.remove(owner)
    eraser.erase()
    assert not get_access_token_model().objects.exists()
    assert not get_refresh_token_model().objects.exists()
    assert not type(application)._base_manager.filter(pk=application.pk).exists()
