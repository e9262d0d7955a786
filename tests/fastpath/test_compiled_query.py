"""What is read by statements that are kept is what Django reads, whoever asks and with whatever values."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import Exists
from django.db.models.expressions import RawSQL
from django.test.utils import CaptureQueriesContext

from accounts.models import APIKey
from config.api.principal import anybody
from config.fastpath.compiled_query import Parameter, Statement
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


def facts(found: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in vars(row).items() if name != "_state"} for row in found]


GIVEN = {
    "key": (lambda pk: users.filter(pk=pk)),
    "foreign key": (lambda pk: orders.filter(user_id=pk)),
    "with a relation": (lambda pk: orders.select_related("user").filter(user_id=pk)),
    "below a parent": (lambda pk: orders.filter(Exists(User.objects.filter(pk=pk)), user_id=pk)),
    "annotated": (lambda pk: users.filter(pk__gte=pk).annotate(sum=RawSQL("SELECT %s + id", [pk]))),
    "taken together": (lambda pk: users.filter(pk=1001).union(users.filter(pk=pk), all=True).order_by("id")),
    "a window": (lambda pk: users.filter(pk__gte=pk).order_by("-name")[:2]),
    "locked": (lambda pk: users.filter(pk=pk).select_for_update(of=("self",), no_key=True)),
    "with a conversion": (lambda pk: Post.objects.filter(user_id=pk).with_comments(3)),
}


@pytest.mark.parametrize("rows_of", GIVEN.values(), ids=GIVEN)
def test_rows_are_those_of_django_for_every_value(rows_of: Any) -> None:
    statement = Statement(rows_of(Parameter("pk")))
    for pk in (1001, 1002, 1003, 1004, 1001):
        expected = list(rows_of(pk))
        assert facts(statement.rows(pk=pk)) == facts(expected)
        if rows_of is not GIVEN["with a relation"]:
            found = statement.records(pk=pk)
            assert [record._asdict() for record in found] == [
                {name: getattr(row, name) for name in record._fields}
                for record, row in zip(found, expected, strict=True)
            ]


def test_statement_is_compiled_once() -> None:
    statement = Statement(users.filter(pk=Parameter("pk")))
    with CaptureQueriesContext(connection) as captured:
        assert [row.pk for pk in (1001, 1002, 1003, 1002) for row in statement.rows(pk=pk)] == [1001, 1002, 1003, 1002]
    assert len({each["sql"].partition("WHERE")[0] for each in captured}) == 1


def test_no_rows_need_no_statement() -> None:
    with CaptureQueriesContext(connection) as captured:
        assert Statement(users.none()).rows() == []
    assert not captured.captured_queries


@pytest.mark.parametrize("model", [User, Order, Post, Comment, APIKey], ids=lambda model: model.__name__)
@pytest.mark.parametrize("role", Role.values)
def test_stand_in_sees_what_a_person_of_its_role_sees(model: Any, role: str, user: Caller) -> None:
    person = user.user
    person.role = role
    Order.objects.create(user=person, item="Tea", qty=1)
    caller = type("Caller", (), {"user": person})()
    kept = Statement(model.objects.visible_to(anybody(role, "jwt")).order_by("pk"))
    assert facts(kept.rows(user_id=person.pk)) == facts(model.objects.visible_to(caller).order_by("pk"))


def test_what_decides_by_anything_else_fails_loudly() -> None:
    somebody = anybody("user", "jwt")
    with pytest.raises(TypeError):
        "users:read" in somebody.scopes  # noqa: B015
    with pytest.raises(Exception, match="Parameter"):
        str(somebody.user.email)
