"""What is read by statements of known shapes is what Django reads."""

import pytest
from django.db import connection
from django.db.models import Exists, F, Q, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.test.utils import CaptureQueriesContext

from config.api import statements
from orders.models import Order
from users.models import User

users, orders = User.objects.order_by(), Order.objects.order_by("id")


def beyond(*key):
    return TupleGreaterThan(Tuple(F("name"), F("id")), key)


# Pairs of one shape, with other values.
KNOWN = {
    "key": (users.filter(pk=1), users.filter(pk=3)),
    "default order": (User.objects.filter(role="user"), User.objects.filter(role="admin")),
    "order and limit": (users.filter(role="user").order_by("-name", "-id")[:2], users.filter(role="x")[:2]),
    "foreign key": (orders.filter(user_id=1), orders.filter(user=User(pk=2))),
    "either": (users.filter(Q(pk=1) | Q(name="B")), users.filter(Q(pk=2) | Q(name="A"))),
    "not": (users.filter(~Q(name="A")), users.filter(~Q(name="B"))),
    "place": (users.filter(beyond("A", 1)).order_by("name", "id")[:3], users.filter(beyond("B", 2)).order_by("name")),
    "annotated by SQL": tuple(users.filter(pk=key).annotate(sum=RawSQL("SELECT %s + id", [key])) for key in (1, 2)),
    "offset": (users.order_by("id")[1:3], users.filter(name="A").order_by("id")[1:3]),
    "with relations": (orders.select_related("user"), orders.select_related("user").filter(pk=1)),
    "below a parent": tuple(
        orders.filter(Exists(User.objects.filter(pk=key)), user_id=key).annotate(
            total=Subquery(orders.filter(user_id=key).values("pk"))
        )
        for key in (1, 2, 4)
    ),
    "chosen by SQL": tuple(users.filter(pk__in=RawSQL("SELECT %s::bigint", [key])) for key in (1, 2)),
    "chosen by a queryset": tuple(users.filter(pk__in=orders.filter(qty=qty).values("user_id")) for qty in (1, 2)),
    "taken together": tuple(users.filter(pk=1).union(users.filter(pk=key), all=True).order_by("id") for key in (2, 3)),
    "one column": (
        users.filter(TupleLessThan(Tuple(F("id")), (3,))),
        users.filter(TupleLessThan(Tuple(F("id")), (2,))),
    ),
}
UNKNOWN = {
    "reversed": users.order_by("id").reverse(),
    "some columns": users.only("id"),
    "annotated": users.annotate(twice=F("id") * 2),
    "joined": orders.filter(user__role="user"),
    "prefetching": orders.prefetch_related("user"),
    "expression": users.filter(name=F("email")),
    "list": users.filter(pk__in=[1, 2]),
    "function": User.objects.with_email("A@EXAMPLE.COM"),
    "none": users.none(),
    "no number of a column": users.filter(pk=2**63),
    "distinct": users.distinct(),
    "given apart": users.extra(where=["id = 1"]),
    "ordered by an expression": users.order_by(F("name").desc()),
}


@pytest.fixture(autouse=True)
def rows(db):
    statements._compiled.cache_clear()
    people = [
        User.objects.create(pk=number, name=name, email=f"{name}@example.com", password="!", role=role)
        for number, (name, role) in enumerate((("A", "user"), ("B", "user"), ("C", "admin")), start=1)
    ]
    Order.objects.bulk_create(Order(user=owner, item="Tea", qty=1) for owner in people)


def facts(found):
    return [{name: value for name, value in vars(row).items() if name != "_state"} for row in found]


@pytest.mark.parametrize("given", KNOWN.values(), ids=KNOWN)
def test_known_shape_is_compiled_once_and_read_as_django_does(given):
    for again in (*given, *given):
        assert facts(statements.fetch(again.all())) == facts(again.all())
    shapes = {str(each.query.sql_with_params()[0]) for each in given}
    assert statements._compiled.cache_info().misses == len(shapes)


@pytest.mark.parametrize("given", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_shape_is_read_by_django(given):
    assert facts(statements.fetch(given.all())) == facts(given.all())
    assert statements._compiled.cache_info().misses == 0


def test_lock_belongs_to_the_shape():
    with CaptureQueriesContext(connection) as captured:
        for rows in (users.filter(pk=1), users.filter(pk=1).select_for_update(of=("self",), no_key=True)):
            assert statements.fetch(rows)
    assert ["FOR NO KEY UPDATE OF" in each["sql"] for each in captured] == [False, True]


def test_values_of_a_shape_are_not_those_it_was_compiled_with():
    assert [row.pk for pk in (1, 2, 3, 2) for row in statements.fetch(users.filter(pk=pk))] == [1, 2, 3, 2]


def test_null_and_value_are_two_shapes():
    User.objects.filter(pk=2).update(status="inactive")
    assert len(statements.fetch(User.objects.filter(credentials_ended_at=None))) == 3
    assert statements.fetch(User.objects.filter(credentials_ended_at__isnull=False)) == []
