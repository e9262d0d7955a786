"""A row that is written by a kept statement is the one that Django would have written, and fails as that would."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pytest
from django.apps import apps
from django.db import DatabaseError, DataError, connection, models, transaction
from django.db.models.expressions import Value
from django.db.models.functions import Lower
from django.db.models.signals import post_save, pre_save
from psycopg.errors import NumericValueOutOfRange

from accounts.models import APIKey, LoginSession
from config.models.resource import Row
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import OwnedQuerySet, User

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
# By model, several choices of columns; what is not given has a default.
VALUES = {
    APIKey: [{"name": "k", "prefix": "urs_", "digest": b"\0\xff", "scopes": ["users:read", "a,b"]}],
    Comment: [{"text": "Tea\n☕"}],
    LoginSession: [{"password_digest": "p", "refresh_digest": b"r", "access_id": "a", "expires_at": MOMENT}],
    Order: [{"item": "Tea", "qty": 2}, {"item": "Tea", "qty": 2, "created_at": MOMENT, "row_version": 7}],
    Payment: [{"amount": Decimal("12.30")}, {"amount": 5, "id": 2**40}],
    Post: [{"title": "t"}, {"title": "t", "body": "b" * 20_000}],
    User: [{"name": "N", "email": "n@example.com", "password": "!"}],
}
CASES = [(model, values) for model in sorted(VALUES, key=lambda found: found.__name__) for values in VALUES[model]]
EVERY_CASE = pytest.mark.parametrize(("model", "values"), CASES, ids=lambda value: getattr(value, "__name__", ""))


def test_every_model_of_rows_is_compared():
    assert VALUES.keys() == {model for model in apps.get_models() if issubclass(model, Row)}


@pytest.fixture
def complete(make_user):
    """Values with those that refer to other rows."""
    owner = make_user().pk
    post = Post.objects.create(user_id=owner, title="t").pk
    refers = {"user_id": owner, "post_id": post}

    def fill(model, values):
        columns = {field.attname for field in model._meta.concrete_fields}
        return values | {name: value for name, value in refers.items() if name in columns}

    return fill


def told(row):
    """All that the instance and the database say of a row, but its id and what moves with the clock."""
    moving = {
        field.attname for field in row._meta.concrete_fields if field.primary_key or field.attname.endswith("_at")
    }
    read = type(row)._base_manager.get(pk=row.pk)
    assert {name: getattr(row, name) for name in moving} == {name: getattr(read, name) for name in moving}
    return [
        (
            sorted(
                (name, repr(value))
                for name, value in vars(each).items()
                if name not in {*moving, "_state", "_loaded", "_prefetched_objects_cache"}
            ),
            {name: type(vars(each)[name]) for name in moving},
            (each._state.db, each._state.adding),
        )
        for each in (row, read)
    ]


def in_django(model, values):
    """The row as Django alone adds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Row, "_do_insert")
        return model._default_manager.create(**values)


def anyhow(*_):
    """A condition that always holds."""
    return "WITH condition AS (SELECT)", []


def undone(add, *arguments, **values):
    with transaction.atomic():
        made = told(add(*arguments, **values))
        transaction.set_rollback(True)
    return made


@EVERY_CASE
def test_row_is_that_of_django(complete, model, values):
    values = complete(model, values)
    expected = undone(in_django, model, values)
    assert undone(model.add, **values) == expected
    assert undone(model._default_manager.create, **values) == expected
    # Users are added by a manager of their own.
    if model is not User:
        assert undone(model.add_answered, values, lambda row: row, anyhow) == expected


CHANGES = {
    APIKey: {"scopes": ["posts:read"], "digest": b"other", "last_used_at": MOMENT},
    Comment: {"text": "Coffee"},
    LoginSession: {"previous_digest": b"p", "ended_at": None},
    Order: {"qty": 3},
    Payment: {"amount": Decimal("9999999999.99")},
    Post: {"title": "T", "body": "Grüße"},
    User: {"name": "M", "role": "support"},
}


def changed_by_django(row, values):
    for name, value in values.items():
        setattr(row, name, value)
    row.save(update_fields=list(values))
    row.refresh_from_db()
    return row


def changed(row, values):
    row.change(**values)
    return row


@EVERY_CASE
def test_change_is_that_of_django(complete, model, values):
    values = complete(model, values)
    changes = CHANGES[model]
    told_of = []
    for change in (changed_by_django, changed):
        with transaction.atomic():
            row = model._default_manager.create(**values)
            before = getattr(row, "updated_at", None)
            told_of.append(told(change(row, changes)))
            assert before is None or row.updated_at > before
            transaction.set_rollback(True)
    assert told_of[0] == told_of[1]


def test_change_leaves_what_others_wrote_meanwhile(complete):
    post = Post.add(**complete(Post, {"title": "t"}))
    mine, other = (Post.objects.get(pk=post.pk) for _ in range(2))
    other.change(body="theirs")
    mine.change(title="mine")
    assert (mine.title, mine.body, mine.row_version) == ("mine", "theirs", 3)


def test_change_of_a_foreign_key_forgets_the_row_it_referred_to(complete, make_user):
    order = Order.add(**complete(Order, {"item": "Tea", "qty": 2}))
    assert order.user.pk == order.user_id
    new = make_user()
    order.change(user_id=new.pk)
    assert order.user == new


def test_change_of_a_row_that_is_gone_fails(complete):
    order = Order.add(**complete(Order, {"item": "Tea", "qty": 2}))
    Order.objects.filter(pk=order.pk).delete()
    with pytest.raises(DatabaseError):
        order.change(qty=3)


# --- Errors


def problem_of(add, *arguments, **values):
    """What is raised, without the failing row that PostgreSQL quotes: its id is another one."""
    with pytest.raises(Exception) as caught, transaction.atomic():  # noqa: PT011 - it is compared
        add(*arguments, **values)
    error = caught.value
    return type(error), str(error).partition("\nDETAIL:  Failing row")[0], type(error.__cause__)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"qty": value} for value in (0, None, "two", [])),
        *({"item": value} for value in ("x" * 201, "", "a\0", "\ud800", None)),
        {"row_version": None},
        {"none": 1},
    ],
    ids=repr,
)
def test_errors_are_those_of_django(complete, wrong):
    values = complete(Order, {"item": "Tea", "qty": 2}) | wrong
    assert problem_of(Order.add, **values) == problem_of(in_django, Order, values)
    assert not Order.objects.exists()
    if wrong.keys() <= {"item", "qty"}:
        order = Order.add(**complete(Order, {"item": "Tea", "qty": 2}))
        assert problem_of(order.change, **wrong) == problem_of(changed_by_django, order, wrong)


@pytest.mark.parametrize("qty", [2**31, 2**32 + 5, 2**63, -(2**64) + 1])
@pytest.mark.parametrize("add", [Order.add, Order.objects.create])
def test_integer_that_does_not_fit_its_column_is_refused_and_not_cut_off(complete, add, qty):
    connection.run(("SELECT %s::bigint, %s::bigint, %s::bigint", [1, 2**20, 2**40]))
    error, _, cause = problem_of(add, **complete(Order, {"item": "Tea", "qty": qty}))
    assert (error, cause) == (DataError, NumericValueOutOfRange)


def test_missing_value_is_missed_as_by_django(complete):
    values = complete(Order, {"qty": 2})
    del values["user_id"]
    assert problem_of(Order.add, **values) == problem_of(in_django, Order, values)


# --- Answered before it is added


def test_row_is_as_it_was_answered(transactional_db, complete):
    told_before = {}

    def answer(row):
        assert not Order.objects.exists()
        told_before.update(vars(row))
        return "answer"

    assert Order.add_answered(complete(Order, {"item": "Tea", "qty": 2}), answer, anyhow) == "answer"
    row = vars(Order.objects.get())
    assert {name: told_before[name] for name in row if name != "_state"} == {
        name: value for name, value in row.items() if name != "_state"
    }


def test_what_fails_in_its_answer_leaves_no_row(transactional_db, complete):
    with pytest.raises(ZeroDivisionError):
        Order.add_answered(complete(Order, {"item": "Tea", "qty": 2}), lambda row: 1 / 0, anyhow)
    assert not Order.objects.exists()


def test_condition_that_does_not_hold_leaves_no_row(transactional_db, complete):
    values, answered = complete(Order, {"item": "Tea", "qty": 2}), []
    add = partial(Order.add_answered, values, lambda row: answered.append(row) or "answer", within=anyhow)
    assert add(unless=("SELECT FROM orders_order WHERE item = %s", ["Tea"])) == "answer"
    assert add(unless=("SELECT FROM orders_order WHERE item = %s", ["Tea"])) is None
    assert len(answered) == 1
    for missing, made in ((0, None), (1, "answer")):
        condition = "WITH condition AS (SELECT FROM generate_series(1, %s))"
        assert add(within=lambda *_, missing=missing: (condition, [missing])) == made  # noqa: B023
    assert (len(answered), Order.objects.count()) == (3, 2)


def test_longer_text_is_refused_and_not_cut_off(transactional_db, complete):
    with pytest.raises(DataError):
        Order.add_answered(complete(Order, {"item": "x" * 201, "qty": 1}), lambda row: row, anyhow)
    assert not Order.objects.exists()


# --- Where Django's way would do more


@pytest.mark.parametrize("signal", [pre_save, post_save])
def test_listener_hears_of_it(complete, signal):
    heard = []

    def listen(sender, instance, **_):
        heard.append(instance)

    values = complete(Order, {"item": "Tea", "qty": 2})
    Order.add(**values)
    signal.connect(listen, sender=Order)
    try:
        order = Order.add(**values)
        order.change(qty=3)
        assert Order.add_answered(values, lambda row: row, anyhow) is None
    finally:
        signal.disconnect(listen, sender=Order)
    Order.add(**values).change(qty=3)
    assert heard == [order, order]


class Shouted(OwnedQuerySet):
    def create(self, **values):
        return super().create(**values | {"item": values["item"].upper()})


def proxy(name, **attributes):
    """A model of the same table."""
    meta = type("Meta", (), {"app_label": "orders", "db_table": "orders_order", "managed": False})
    columns = {"__module__": __name__, "Meta": meta, "user_id": models.BigIntegerField(), "item": models.TextField()}
    return type(name, (Row,), {"id": models.BigAutoField(primary_key=True), **columns, **attributes})


@pytest.fixture
def forgotten():
    """Models that are made for a test are unknown to the others."""
    yield
    for name in ("saves", "manages"):
        apps.all_models["orders"].pop(name, None)
    apps.clear_cache()


@pytest.mark.usefixtures("forgotten")
def test_models_own_ways_are_gone(complete):
    def save(self, *arguments, **options):
        self.item = self.item.upper()
        models.Model.save(self, *arguments, **options)

    values = complete(Order, {"item": "Tea"})
    saves = proxy("Saves", save=save, qty=models.IntegerField(default=lambda: 5))
    manages = proxy("Manages", objects=Shouted.as_manager(), qty=models.IntegerField(default=lambda: 5))
    for model in (saves, manages):
        assert model.add_answered(values, lambda row: row, anyhow) is None
        row = model.add(**values)
        assert (row.item, row.qty) == ("TEA", 5)
        assert model.objects.get(pk=row.pk).item == "TEA"
    row = saves.objects.get(item="TEA", pk=saves.objects.earliest("pk").pk)
    row.change(item="coffee")
    assert (row.item, saves.objects.get(pk=row.pk).qty) == ("COFFEE", 5)


def test_related_row_and_sql_are_taken_as_by_django(complete, make_user):
    owner = make_user()
    assert Order.add(user=owner, item="Tea", qty=1).user_id == owner.pk
    order = Order.objects.create(user=owner, item=Lower(Value("TEA")), qty=1)
    assert Order.objects.get(pk=order.pk).item == "tea"
    order.change(user=make_user())
    assert Order.objects.get(pk=order.pk).user != owner


# --- What the server keeps


def prepared():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO \"posts_post\"%'"
        )
        return cursor.fetchall()


def test_one_statement_serves_whatever_defaults_are_given(complete):
    for values in ({"title": "t"}, {"body": "b", "title": "t"}, {"title": "t", "body": ""}):
        Post.add(**complete(Post, values))
        Post.objects.create(**complete(Post, values))
    assert len(prepared()) == 1
