"""A row that is added by a deferred insert is the one that Django would have added, and fails as that would."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import InternalError, connection, transaction
from django.db.models import DateField, DateTimeField, Field, Model, QuerySet, signals
from django.urls import get_resolver
from psycopg.errors import ReadOnlySqlTransaction

from config.api.principal import ALL_SCOPES, Principal
from config.api.representation.serializers import ResourceSerializer
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import IdempotencyKey
from config.fastpath import inserts
from config.fastpath.http import FastResponse
from config.fastpath.inserts import Guard
from config.fastpath.views import adds_alone
from config.models import IdempotencyRecord
from orders.models import Order
from payments.models import Payment
from posts.models import Post
from tests.fastpath.test_viewsets import find_views
from users.models import User

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
# By model, several choices of columns; the others have defaults.
VALUES = {
    Order: [{"item": "Tea", "qty": 2}, {"item": "Tea", "qty": 2, "created_at": MOMENT, "row_version": 7}],
    Payment: [{"amount": Decimal("12.30")}, {"amount": 5, "id": 2**40}],
    Post: [{"title": "t"}, {"title": "t", "body": "b" * 20_000}],
}
CASES = [(model, values) for model in sorted(VALUES, key=lambda each: each.__name__) for values in VALUES[model]]
# A guard that lets each row pass.
ALWAYS = Guard({}, "guard AS (SELECT * FROM given)", {})


@pytest.fixture
def complete(make_user):
    """Values with their owner."""
    owner = make_user().pk
    return lambda model, values: {"user_id": owner} | values


def add(model, values, guard=ALWAYS):
    """The row, as the fast path adds it."""
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


VIEWS = {view.cls for view in find_views(get_resolver().url_patterns) if view.actions.get("post") == "create"}
ADDED = sorted(filter(adds_alone, VIEWS), key=lambda each: each.__name__)


def test_all_rows_that_are_added_so_are_compared():
    assert {view_class.queryset.model for view_class in ADDED} == VALUES.keys()


@pytest.mark.parametrize("view_class", ADDED, ids=lambda each: each.__name__)
def test_to_add_such_a_row_is_one_insert_and_nothing_else(view_class):
    """No hook of a model, a manager, a field or a serializer, and no receiver, is gone around."""
    model, serializer_class = view_class.queryset.model, view_class.serializer_class
    names = ("save", "validate", "to_internal_value", "run_validation", "is_valid", "get_fields")
    assert [name for name in names if getattr(serializer_class, name) is not getattr(ResourceSerializer, name)] == []
    assert [name for name in serializer_class().fields if hasattr(serializer_class, f"validate_{name}")] == []
    assert view_class.get_address_values is ResourceViewSet.get_address_values
    assert [name for name in ("save", "save_base") if getattr(model, name) is not getattr(Model, name)] == []
    assert type(model._default_manager.all()).create is QuerySet.create
    assert not any(signal.has_listeners(model) for signal in (signals.pre_save, signals.post_save))
    stock = {each.pre_save for each in (Field, DateField, DateTimeField)}
    given = [field for field in model._meta.local_concrete_fields if field not in model._meta.db_returning_fields]
    assert {type(field).pre_save for field in given} <= stock
    assert {field.attname for field in given} <= serializer_class().fields.keys()


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
        *({"qty": value} for value in (0, None)),
        *({"item": value} for value in ("x" * 201, "", None)),
        {"row_version": None},
    ],
    ids=repr,
)
def test_errors_are_those_of_django(complete, wrong):
    values = complete(Order, {"item": "Tea", "qty": 2}) | wrong
    assert get_error(add, Order, values) == get_error(create, Order, values)
    assert not Order.objects.exists()


# --- Reserved before it is added


@pytest.mark.parametrize(("count", "added"), [(0, False), (1, True)])
def test_row_is_added_where_the_guard_lets_it_pass(transactional_db, complete, count, added):
    pending = inserts.reserve(Order, complete(Order, {"item": "Tea", "qty": 2}), "default")
    guard = Guard({"count": "integer"}, "guard AS (SELECT * FROM given WHERE count > 0)", {"count": count})
    assert pending.commit(guard) is added
    assert (pending.row._state.adding, Order.objects.exists()) == (not added, added)


@pytest.mark.parametrize("part", ["nextval", "guard AS"], ids=["reserve", "commit"])
def test_row_that_a_standby_refuses_is_added_by_the_reference(user, part):
    refused = []

    def refuse(execute, sql, *arguments):
        if part in sql and not refused:
            refused.append(sql)
            raise InternalError from ReadOnlySqlTransaction()
        return execute(sql, *arguments)

    with connection.execute_wrapper(refuse):
        assert user.post("/orders", {"item": "Tea", "qty": 2}).status == 201
    assert (len(refused), Order.objects.count()) == (1, 1)


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
