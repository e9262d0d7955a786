"""What is read by compiled queries is what Django reads, whoever asks and with whatever values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import Exists, Model, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.signals import post_init, pre_init
from django.test.utils import CaptureQueriesContext

from accounts.models import APIKey
from config.api.principal import Principal
from config.fastpath.queries import BindParameter, CompiledQuery, build_placeholder_principal
from orders.models import Order
from posts.models import Comment, Post
from tests.conftest import Caller
from users.models import Role, User

users, orders = User.objects.order_by("id"), Order.objects.order_by("id")


@pytest.fixture(autouse=True)
def rows(db: None) -> None:
    people = [
        User.objects.create(pk=number, name=name, email=f"{name}@example.com", password="!", role=role)
        for number, (name, role) in enumerate((("A", "user"), ("B", "user"), ("C", "admin")), start=1001)
    ]
    Order.objects.bulk_create(Order(user=owner, item="Tea", qty=1) for owner in people)
    post = Post.objects.create(user=people[0], title="A title")
    Comment.objects.create(post=post, user=people[1], text="A comment")


def get_columns(instances: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in vars(row).items() if name != "_state"} for row in instances]


QUERYSETS: dict[str, Callable[[Any], QuerySet[Any]]] = {
    "key": (lambda pk: users.filter(pk=pk)),
    "foreign key": (lambda pk: orders.filter(user_id=pk)),
    "select_related": (lambda pk: orders.select_related("user").filter(user_id=pk)),
    "below a parent": (lambda pk: orders.filter(Exists(User.objects.filter(pk=pk)), user_id=pk)),
    "annotation": (lambda pk: users.filter(pk__gte=pk).annotate(sum=RawSQL("SELECT %s + id", [pk]))),
    "union": (lambda pk: users.filter(pk=1001).union(users.filter(pk=pk), all=True).order_by("id")),
    "slice": (lambda pk: users.filter(pk__gte=pk).order_by("-name")[:2]),
    "lock": (lambda pk: users.filter(pk=pk).select_for_update(of=("self",), no_key=True)),
    "from_db_value": (lambda pk: Post.objects.filter(user_id=pk).with_comments(3)),
}


@pytest.mark.parametrize("name", QUERYSETS)
def test_rows_are_those_of_django_for_every_value(name: str) -> None:
    build = QUERYSETS[name]
    query = CompiledQuery(build(BindParameter("pk")))
    for pk in (1001, 1002, 1003, 1004, 1001):
        expected = list(build(pk))
        assert get_columns(query.fetch_instances(pk=pk)) == get_columns(expected)
        if name != "select_related":
            records = query.fetch_records(pk=pk)
            assert [record._asdict() for record in records] == [
                {name: getattr(row, name) for name in query.names} for row in expected
            ]


def test_first_row_and_the_columns_of_a_greater_statement() -> None:
    wrap_sql = "SELECT found.*, 7, 'more' FROM ({}) AS found".format
    query = CompiledQuery(users.filter(pk__gte=BindParameter("pk")), wrap_sql)
    found = query.first(pk=1002)
    assert found is not None
    row, further = found
    assert get_columns([row]) == get_columns([User.objects.get(pk=1002)])
    assert tuple(further) == (7, "more")
    assert query.first(pk=1004) is None


def test_queryset_without_rows_needs_no_statement() -> None:
    query = CompiledQuery(users.none())
    with CaptureQueriesContext(connection) as captured:
        assert (query.fetch_instances(), query.fetch_records(), query.first()) == ([], [], None)
    assert not captured.captured_queries


@pytest.mark.parametrize("model", [User, Order, Post, Comment, APIKey], ids=lambda model: model.__name__)
@pytest.mark.parametrize("role", Role.values)
def test_placeholder_principal_sees_what_a_user_of_its_role_sees(model: Any, role: str, user: Caller) -> None:
    person = user.user
    person.role = role
    Order.objects.create(user=person, item="Tea", qty=1)
    principal = Principal(person, frozenset(), "jwt")
    query = CompiledQuery(model.objects.visible_to(build_placeholder_principal(role, "jwt")).order_by("pk"))
    expected = model.objects.visible_to(principal).order_by("pk")
    assert get_columns(query.fetch_instances(user_id=person.pk)) == get_columns(expected)


def test_query_that_depends_on_anything_else_cannot_be_built() -> None:
    principal = build_placeholder_principal("user", "jwt")
    with pytest.raises(TypeError):
        "users:read" in principal.scopes  # noqa: B015
    with pytest.raises(Exception, match="BindParameter"):
        str(principal.user.email)


@pytest.mark.parametrize("model", apps.get_models(), ids=lambda model: model.__name__)
def test_instances_of_the_models_are_made_in_no_way_of_their_own(model: Any) -> None:
    assert model.__init__ is Model.__init__
    assert not any(signal.has_listeners(model) for signal in (pre_init, post_init))
