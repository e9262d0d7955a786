"""A row that is added by a deferred insert is the one that Django would have added, and fails as that would."""

from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import DataError, connection, models, transaction
from django.db.models import signals
from psycopg.errors import NumericValueOutOfRange

from accounts.models import APIKey, LoginSession
from config.api.principal import ALL_SCOPES, Principal
from config.api.writing.idempotency import IdempotencyKey
from config.fastpath import inserts
from config.fastpath.http import FastResponse
from config.fastpath.inserts import Guard
from config.models import IdempotencyRecord, Resource
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import OwnedQuerySet, User

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
# By model, several choices of columns; the others have defaults.
VALUES = {
    APIKey: [{"name": "k", "prefix": "urs_", "digest": b"\0\xff", "scopes": ["users:read", "a,b"]}],
    Comment: [{"text": "Tea\n☕"}],
    LoginSession: [{"password_digest": "p", "refresh_digest": b"r", "access_id": "a", "expires_at": MOMENT}],
    Order: [{"item": "Tea", "qty": 2}, {"item": "Tea", "qty": 2, "created_at": MOMENT, "row_version": 7}],
    Payment: [{"amount": Decimal("12.30")}, {"amount": 5, "id": 2**40}],
    Post: [{"title": "t"}, {"title": "t", "body": "b" * 20_000}],
}
CASES = [(model, values) for model in sorted(VALUES, key=lambda each: each.__name__) for values in VALUES[model]]
# A guard that lets each row pass.
ALWAYS = Guard({}, "guard AS (SELECT * FROM given)", {})


@pytest.fixture
def complete(make_user):
    """Values with those that refer to other rows."""
    owner = make_user().pk
    post = Post.objects.create(user_id=owner, title="t").pk
    references = {"user_id": owner, "post_id": post}

    def fill(model, values):
        columns = {field.attname for field in model._meta.concrete_fields}
        return values | {name: value for name, value in references.items() if name in columns}

    return fill


def supports(model, values):
    return inserts.supports(model, frozenset(values), "default")


def add(model, values, guard=ALWAYS):
    """The row, as the fast path adds it."""
    assert supports(model, values)
    pending = inserts.reserve(model, values, "default")
    assert pending.commit(guard)
    return pending.row


def create(model, values):
    """The row, as Django adds it."""
    return model._default_manager.create(**values)


def get_state(row):
    """All that the instance and the database hold of a row, but its id and what moves with the clock."""
    moving = {
        field.attname for field in row._meta.concrete_fields if field.primary_key or field.attname.endswith("_at")
    }
    read = type(row)._base_manager.get(pk=row.pk)
    assert {name: getattr(row, name) for name in moving} == {name: getattr(read, name) for name in moving}
    return [
        (
            sorted((name, repr(value)) for name, value in vars(each).items() if name not in {*moving, "_state"}),
            {name: type(vars(each)[name]) for name in moving},
            (each._state.db, each._state.adding),
        )
        for each in (row, read)
    ]


def get_state_and_roll_back(write, model, values):
    with transaction.atomic():
        state = get_state(write(model, values))
        transaction.set_rollback(True)
    return state


def test_all_resources_are_compared():
    """But for users, whose save() is their own."""
    assert {model for model in apps.get_models() if issubclass(model, Resource)} <= VALUES.keys() | {User}
    assert not supports(User, {"name": "N", "email": "n@example.com", "password": "!"})


@pytest.mark.parametrize(("model", "values"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_row_is_that_of_django(complete, model, values):
    values = complete(model, values)
    assert get_state_and_roll_back(add, model, values) == get_state_and_roll_back(create, model, values)


# --- Errors


def get_error(write, model, values):
    """What is raised, without the failing row that PostgreSQL quotes: its id is another one."""
    with pytest.raises(Exception) as raised, transaction.atomic():  # noqa: PT011 - it is compared
        write(model, values)
    error = raised.value
    return type(error), str(error).partition("\nDETAIL:  Failing row")[0], type(error.__cause__)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"qty": value} for value in (0, None, "two", [])),
        *({"item": value} for value in ("x" * 201, "", "a\0", "\ud800", None)),
        {"row_version": None},
    ],
    ids=repr,
)
def test_errors_are_those_of_django(complete, wrong):
    values = complete(Order, {"item": "Tea", "qty": 2}) | wrong
    assert get_error(add, Order, values) == get_error(create, Order, values)
    assert not Order.objects.exists()


@pytest.mark.parametrize("qty", [2**31, 2**32 + 5, 2**63, -(2**64) + 1])
@pytest.mark.parametrize("write", [add, create])
def test_integer_that_does_not_fit_its_column_is_refused_and_not_cut_off(complete, write, qty):
    connection.run(("SELECT %s::bigint, %s::bigint, %s::bigint", [1, 2**20, 2**40]))
    error, _, cause = get_error(write, Order, complete(Order, {"item": "Tea", "qty": qty}))
    assert (error, cause) == (DataError, NumericValueOutOfRange)


# --- Reserved before it is added


@pytest.mark.parametrize(("count", "added"), [(0, False), (1, True)])
def test_row_is_added_where_the_guard_lets_it_pass(transactional_db, complete, count, added):
    pending = inserts.reserve(Order, complete(Order, {"item": "Tea", "qty": 2}), "default")
    guard = Guard({"count": "integer"}, "guard AS (SELECT * FROM given WHERE count > 0)", {"count": count})
    assert pending.commit(guard) is added
    assert (pending.row._state.adding, Order.objects.exists()) == (not added, added)


# --- Guards of users and idempotency keys


@pytest.fixture
def key(make_user):
    return IdempotencyKey(make_user().pk, "POST /payments", "k", b"fingerprint")


def reserve_payment(key):
    return inserts.reserve(Payment, {"user_id": key.user_id, "amount": Decimal(1)}, "default")


def commit_with_key(pending, key):
    response = FastResponse({"id": pending.row.pk}, 201, headers={"Location": f"/payments/{pending.row.pk}"})
    return pending.commit(inserts.get_key_guard(key, response, pending.row))


def commit_with_user(pending, key):
    principal = Principal(User(pk=key.user_id), ALL_SCOPES, "jwt")
    return pending.commit(inserts.get_user_guard(principal))


@pytest.mark.parametrize("commit", [commit_with_key, commit_with_user])
def test_nothing_is_added_for_a_user_that_was_removed(transactional_db, key, elsewhere, commit):
    pending = reserve_payment(key)
    elsewhere.execute(
        "UPDATE users_user SET removed_at = now(), name = '', email = '', password = '', status = 'inactive'"
        " WHERE id = %s",
        [key.user_id],
    )
    elsewhere.commit()
    assert not commit(pending, key)
    assert (Payment.objects.count(), IdempotencyRecord.objects.count()) == (0, 0)


# --- What is left to Django


@pytest.mark.parametrize("sender", [Order, None])
@pytest.mark.parametrize("name", ["pre_save", "post_save", "pre_init", "post_init"])
def test_model_is_not_supported_while_a_receiver_is_connected(name, sender):
    signal, values = getattr(signals, name), {"user_id", "item", "qty"}

    def receive(**_):
        pass

    assert supports(Order, values)
    signal.connect(receive, sender=sender)
    try:
        assert not supports(Order, values)
    finally:
        signal.disconnect(receive, sender=sender)
    assert supports(Order, values)


@pytest.mark.parametrize("names", [{"none"}, {"user"}, {"pk"}])
def test_names_that_are_no_columns_are_not_supported(names):
    assert not supports(Order, names | {"item", "qty"})


def override(base, **members):
    return type("Special", (base,), members)


@contextmanager
def build_model(**attributes):
    """A model with attributes of its own, unknown to the others afterwards."""
    meta = type("Meta", (), {"app_label": "orders", "db_table": "orders_order", "managed": False})
    columns = {"id": models.BigAutoField(primary_key=True), "item": models.TextField()}
    try:
        yield override(models.Model, __module__=__name__, Meta=meta, **columns | attributes)
    finally:
        apps.all_models["orders"].pop("special", None)
        apps.clear_cache()


def do_more(*arguments, **options):
    raise NotImplementedError


# What does more than an INSERT, or has values that JSON does not carry.
UNSUPPORTED = {
    **{name: (name, do_more) for name in ("save", "save_base", "__init__")},
    "QuerySet.create": ("objects", override(OwnedQuerySet, create=do_more).as_manager()),
    "Manager.create": ("objects", override(models.Manager, create=do_more)()),
    "Field.pre_save": ("item", override(models.TextField, pre_save=do_more)()),
    "auto_now_add": ("made", models.DateTimeField(auto_now_add=True)),
    "FloatField": ("ratio", models.FloatField(null=True)),
    "JSONField": ("facts", models.JSONField(null=True)),
    "ArrayField of FloatField": ("ratios", ArrayField(models.FloatField(), null=True)),
}
SUPPORTED = {
    "manager": ("objects", models.Manager.from_queryset(OwnedQuerySet)()),
    "time": ("seen", models.DateTimeField(null=True)),
    "array": ("others", ArrayField(models.BigIntegerField(), null=True)),
}


@pytest.mark.parametrize(("name", "attribute"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_model_that_does_more_than_an_insert_is_not_supported(db, name, attribute):
    with build_model(**{name: attribute}) as model:
        assert not supports(model, {"item"})


@pytest.mark.parametrize(("name", "attribute"), SUPPORTED.values(), ids=SUPPORTED)
def test_model_of_plain_columns_is_supported(db, name, attribute):
    with build_model(**{name: attribute}) as model:
        assert supports(model, {"item"})
