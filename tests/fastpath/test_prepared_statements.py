"""A prepared statement does what it does in a cursor of Django, and is parsed once for a connection."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from django.apps import apps
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from orders.models import Order
from tests.conftest import own_session

INTEGERS = ("0", "-1", "32767", "null")
TEXTS = ("''", "'Grüße, 世界 🎉'", r"'a\b''\n'", "null")
TIMES = ("'2026-12-01 09:30:00.000001+02'", "'0001-01-01 00:00:00Z'", "'9999-12-31 23:59:59.999999Z'", "null")
ARRAYS = ("'{}'", """'{a,"b c","\\"",NULL}'""", "null")
NUMBER_ARRAYS = ("'{}'", "'{1,NULL,-9223372036854775808}'", "null")
VALUES = {
    "bigint": (*INTEGERS, "'-9223372036854775808'", "'9223372036854775807'"),
    "integer": (*INTEGERS, "'-2147483648'"),
    "smallint": INTEGERS,
    "boolean": ("true", "false", "null"),
    "bytea": (r"'\x'", r"'\x00ff5c27'", "null"),
    "date": ("'2026-12-01'", "'0001-01-01'", "'9999-12-31'", "null"),
    "inet": ("'192.0.2.1'", "'2001:db8::1'", "null"),
    "jsonb": ("""'{"a": [1, 2.50, null, "ü"]}'""", "'1'", "null"),
    "numeric": ("0", "0.00", "12.50", "-0.01", "1e20", "'NaN'", "123456789012345678901234567890.123456", "null"),
    "numeric(12, 2)": ("0", "9999999999.99", "12.5", "null"),
    "numeric(30, 2)": ("0", "100000000", "null"),
    "double precision": ("0", "0.1", "1e300", "'NaN'", "null"),
    "text": TEXTS,
    "uuid": ("'8a1f6e0c-4f0e-4a57-9b9e-1c2d3e4f5a6b'", "null"),
    "timestamp with time zone": TIMES,
    "varchar[]": ARRAYS,
}


def run(sql, *values):
    (rows,) = connection.run((sql, values))
    return rows


def run_in_cursor(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def prepared(like="%"):
    return run_in_cursor("SELECT name, statement FROM pg_prepared_statements WHERE statement LIKE %s", like)


def get_values(kind):
    if kind.endswith("[]"):
        return NUMBER_ARRAYS if kind == "bigint[]" else ARRAYS
    return TEXTS if kind.startswith("varchar") else VALUES[kind]


def get_column_types():
    columns = [field for model in apps.get_models() for field in model._meta.local_concrete_fields]
    return {kind for field in columns if (kind := field.db_type(connection))}


@pytest.mark.parametrize("kind", sorted(VALUES.keys() | get_column_types()))
def test_values_are_those_of_a_cursor(db, kind):
    for value in get_values(kind):
        sql = f"SELECT {value}::{kind}"
        assert repr(run(sql)) == repr(run_in_cursor(sql))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("bigint", value) for value in (1, 40_000, 2**40, "5", None)),
        *(("numeric", value) for value in (2**70, Decimal("0.50"), 1.5, None)),
        *(("text", value) for value in ("a\\'b", "", None)),
        ("boolean", True),
        ("bytea", b"\0\xff"),
        *(("bigint[]", value) for value in ([1, 2], [1, 2**40, None], [])),
        *(("text[]", value) for value in (["a", None, "{"], [])),
        ("timestamptz", datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)),
        ("interval", timedelta(days=1, seconds=2)),
    ],
    ids=repr,
)
def test_values_are_sent_as_a_cursor_sends_them(db, kind, value):
    sql = f"SELECT %s::{kind}, '100%%', %s::{kind}"
    assert repr(run(sql, value, value)) == repr(run_in_cursor(sql, value, value))


def test_one_text_takes_values_of_several_types(db):
    sql = "SELECT %s::bigint"
    for value in (1, 40_000, None, 2**40, 2, "3"):
        assert run(sql, value) == [(value and int(value),)]


def test_statement_without_a_result_gives_no_rows(db):
    assert run("SET LOCAL application_name = 'test'") == []


# --- Errors


@pytest.mark.parametrize(
    ("sql", "error", "cause"),
    [
        ("SELECT 1 / %s", DataError, psycopg.errors.DivisionByZero),
        ("SELECT nonsense, %s", ProgrammingError, psycopg.errors.UndefinedColumn),
        ("SELECT %s; SELECT 2", ProgrammingError, psycopg.errors.SyntaxError),
        (
            "INSERT INTO orders_order (user_id, item, qty) SELECT id, '', 1 FROM users_user WHERE %s = 0 LIMIT 1",
            IntegrityError,
            psycopg.errors.CheckViolation,
        ),
    ],
)
def test_error_is_that_of_a_cursor_and_breaks_the_transaction(db, user, sql, error, cause):
    with pytest.raises(error) as caught, transaction.atomic():
        run(sql, 0)
    assert type(caught.value.__cause__) is cause
    assert run("SELECT 1") == [(1,)]
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            run("SELECT 1")


# --- Transactions


def test_transaction_begins_with_it_and_ends_as_django_ends_it(transactional_db, make_user):
    insert = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING id"
    owner = make_user().pk
    with transaction.atomic():
        run(insert, owner, "first")
        with pytest.raises(IntegrityError), transaction.atomic():
            run(insert, owner, "")
        with transaction.atomic():
            run(insert, owner, "also gone")
            transaction.set_rollback(True)
        run(insert, owner, "last")
        with psycopg.connect(connection.connection.info.dsn) as other:
            assert other.execute("SELECT count(*) FROM orders_order").fetchone() == (0,)
    with transaction.atomic():
        run(insert, owner, "gone")
        transaction.set_rollback(True)
    assert list(Order.objects.values_list("item", flat=True)) == ["first", "last"]


# --- Several at once


INSERT = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING item"


def get_committed_items():
    with psycopg.connect(connection.connection.info.dsn) as other:
        return [item for (item,) in other.execute("SELECT item FROM orders_order ORDER BY id")]


@pytest.fixture
def owner(make_user):
    return make_user().pk


def test_several_statements_give_each_their_rows(transactional_db, owner):
    statements = [("SELECT %s::int", [1]), ("SELECT x FROM generate_series(1, %s) x", [2]), (INSERT, [owner, "third"])]
    assert connection.run(*statements) == [[(1,)], [(1,), (2,)], [("third",)]]
    assert get_committed_items() == ["third"]


def test_several_statements_outside_of_a_transaction_take_effect_together_or_not_at_all(transactional_db, owner):
    with pytest.raises(IntegrityError):
        connection.run((INSERT, [owner, "first"]), (INSERT, [owner, ""]), (INSERT, [owner, "third"]))
    assert connection.run((INSERT, [owner, "later"])) == [[("later",)]]
    assert get_committed_items() == ["later"]


@pytest.mark.parametrize("further", [0, 2])
def test_error_at_the_end_of_a_transaction_is_raised(transactional_db, further):
    with pytest.raises(IntegrityError):
        connection.run((INSERT, [0, "no user"]), *[("SELECT 1", [])] * further)
    assert run("SELECT %s::int", 7) == [(7,)]
    assert get_committed_items() == []


def test_statement_behind_one_that_fails_is_not_run_and_the_transaction_is_broken(transactional_db, owner):
    with pytest.raises(IntegrityError), transaction.atomic():
        connection.run((INSERT, [owner, ""]), (INSERT, [owner, "second"]))
    assert run("SELECT 1") == [(1,)]
    assert get_committed_items() == []


@own_session
@pytest.mark.parametrize("begin", [False, True])
def test_lost_connection_is_an_error_of_several_statements(transactional_db, begin):
    assert run("SELECT %s::int", 7) == [(7,)]
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
    with pytest.raises(OperationalError) as caught, transaction.atomic() if begin else nullcontext():
        connection.run(("SELECT %s::int", [7]), ("SELECT %s::int", [7]))
    assert isinstance(caught.value.__cause__, psycopg.errors.AdminShutdown)
    connection.close_if_unusable_or_obsolete()
    assert run("SELECT %s::int", 7) == [(7,)]


def test_longer_values_than_a_socket_takes_at_once(transactional_db):
    long = "x" * 4_000_000
    assert connection.run(*[("SELECT %s::text", [long])] * 4) == [[(long,)]] * 4


# --- What stays prepared


@own_session
def test_column_that_gets_another_type_is_read_as_such(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
        assert run("SELECT value FROM changing") == [(1,)]
        cursor.execute("ALTER TABLE changing ALTER value TYPE jsonb USING to_jsonb(value)")
        assert run("SELECT value FROM changing") == [("1",)]
        cursor.execute("ALTER TABLE changing ALTER value TYPE text")
        with pytest.raises(NotSupportedError), transaction.atomic():
            run("SELECT value FROM changing")
        assert run("SELECT value FROM changing") == [("1",)]
        cursor.execute("DROP TABLE changing")
    assert len(prepared("%FROM changing%")) == 1


# --- Execute wrappers and the log of queries


def test_statement_is_seen_by_execute_wrappers_and_the_log(db):
    seen = []

    def wrap(execute, sql, params, many, context):
        seen.append((sql, params))
        return execute(sql, params, many, context)

    with CaptureQueriesContext(connection) as captured:
        assert run("SELECT %s::int", 7) == [(7,)]
    assert [query["sql"] for query in captured] == ["SELECT $1::int"]
    with connection.execute_wrapper(wrap):
        assert run("SELECT %s::int", 7) == [(7,)]
        assert run("SET LOCAL application_name = 'test'") == []
    assert seen[0] == ("SELECT %s::int", (7,))
