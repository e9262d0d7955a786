"""Of a row, the pages of a list read from the database what they show, and no more."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.api.listing.cursors import CursorPosition
from config.api.listing.filters import Ordering
from config.fastpath.queries import get_list_query, get_prototype
from config.fastpath.serializers import get_renderer
from orders.models import Order
from orders.views import OrderViewSet
from posts.models import Post
from posts.views import PostViewSet
from tests.conftest import Caller
from users.views import UserViewSet

BY_ID, BY_ID_BACKWARDS, BY_NAME = Ordering(), Ordering("id", descending=True), Ordering("name", descending=True)
EVERY_USER_FIELD = {"id", "name", "email", "role", "status", "created_at", "updated_at"}


class JoiningViewSet(OrderViewSet):
    queryset = Order.objects.select_related("user")


class DeferringViewSet(OrderViewSet):
    queryset = Order.objects.defer("item")


def build_query(view_class: Any, fields: str = "", ordering: Ordering = BY_ID, **filters: str) -> Any:
    chosen = frozenset(fields.split(",")) if fields else None
    prototype = get_prototype(view_class, "list", "admin", "jwt", chosen)
    renderer = get_renderer(view_class.serializer_class, None, prototype.field_names)
    attributes = renderer.attributes if renderer else None
    query = get_list_query(prototype, ordering, filters, attributes)
    assert query
    return query.bind({"user_id": 0})


def read_pages(query: Any) -> Iterator[list[Any]]:
    """A page of each kind, which is the first one."""
    last = query.ordering.get_key(query.slice(0, 20)[0][-1])
    yield query.slice(0, 20)[0]
    if query.ordering.field == "id":
        yield query.fetch(type(query).build_slice_by_id, 20, start=0)
    yield query.fetch(type(query).build_slice_from_end, 0, 20)
    yield query.seek(None, 20).rows
    yield query.seek(CursorPosition("<=", last), 20).rows


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ({}, EVERY_USER_FIELD),
        ({"fields": "email"}, {"id", "email"}),
        ({"fields": "email", "ordering": BY_ID_BACKWARDS}, {"id", "email"}),
        # Of several parts, whose keys are read first.
        ({"fields": "email", "role": "support"}, {"id", "email"}),
        # Their order needs the name.
        ({"fields": "email", "ordering": BY_NAME}, {"id", "email", "name"}),
        # A union of parts.
        ({"fields": "email", "ordering": BY_NAME, "role": "support"}, {"id", "email", "name"}),
    ],
)
def test_pages_read_what_they_show(support: Caller, query: Any, columns: set[str]) -> None:
    for page in read_pages(build_query(UserViewSet, **query)):
        (row,) = page
        assert {*row._asdict()} - {"list_total", "other_side"} == columns
        assert row.email == support.user.email


def test_posts_read_what_they_show_beside_their_comments(user: Caller) -> None:
    Post.objects.create(user=user.user, title="Tea", body="Green")
    for page in read_pages(build_query(PostViewSet, "title,comments")):
        (row,) = page
        assert {*row._asdict()} - {"list_total", "other_side"} == {"id", "title", "first_comments"}
        assert (row.title, row.first_comments) == ("Tea", [])


@pytest.mark.parametrize("view_class", [JoiningViewSet, DeferringViewSet])
def test_rows_have_what_is_shown_whatever_columns_the_view_chose(view_class: Any, user: Caller) -> None:
    Order.objects.create(user=user.user, item="Tea", qty=1)
    for page in read_pages(build_query(view_class, "item")):
        with CaptureQueriesContext(connection) as captured:
            assert [row.item for row in page] == ["Tea"]
        assert not captured.captured_queries


def test_no_hash_of_a_password_leaves_the_database(support: Caller) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert list(read_pages(build_query(UserViewSet)))
    assert len(captured) >= 5
    assert not [each["sql"] for each in captured if re.search(r"\bpassword\b", each["sql"])]
