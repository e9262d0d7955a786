"""A prepared statement does what it does in a cursor of Django, and is parsed once for a connection."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from django.apps import apps
from django.db import DataError, IntegrityError, ProgrammingError, connection
from django.test.utils import CaptureQueriesContext

from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.statements import MAX_STATEMENTS
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


@pytest.fixture
def run(run_together, monkeypatch):
    """Runs statements as one request does, one after the other, on one connection. Gives the rows of each."""
    monkeypatch.setattr("config.fastpath.postgresql.pipeline.SECONDS_TO_BE_LATE", 60.0)

    def run_all(*statements):
        def ask():
            return [get_connection("default").run(sql, values) for sql, *values in statements]

        (found,) = run_together(ask)
        if isinstance(found, Exception):
            raise found
        return found

    return run_all


def run_in_cursor(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


SENT = [
    *(("bigint", value) for value in (1, 40_000, 2**40, "5", None)),
    *(("numeric", value) for value in (2**70, Decimal("0.50"), 1.5, None)),
    *(("text", value) for value in ("a\\'b", "", None)),
    ("boolean", True),
    ("bytea", b"\0\xff"),
    *(("bigint[]", value) for value in ([1, 2], [1, 2**40, None], [])),
    *(("text[]", value) for value in (["a", None, "{"], [])),
    ("timestamptz", datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)),
    ("interval", timedelta(days=1, seconds=2)),
]


def get_values(kind):
    if kind.endswith("[]"):
        return NUMBER_ARRAYS if kind == "bigint[]" else ARRAYS
    return TEXTS if kind.startswith("varchar") else VALUES[kind]


def get_column_types():
    columns = [field for model in apps.get_models() for field in model._meta.local_concrete_fields]
    return {kind for field in columns if (kind := field.db_type(connection))}


def compare(run, *statements):
    assert [repr(rows) for rows in run(*statements)] == [repr(run_in_cursor(*each)) for each in statements]


@pytest.mark.parametrize("kind", sorted(VALUES.keys() | get_column_types()))
def test_values_are_those_of_a_cursor(run, kind):
    compare(run, *[[f"SELECT {value}::{kind}"] for value in get_values(kind)])


def test_values_are_sent_as_a_cursor_sends_them(run):
    compare(run, *[[f"SELECT %s::{kind}, '100%%', %s::{kind}", value, value] for kind, value in SENT])


def test_one_text_takes_values_of_several_types(run):
    values = (1, 40_000, None, 2**40, 2, "3")
    found = run(*[["SELECT %s::bigint", value] for value in values])
    assert found == [[(value and int(value),)] for value in values]


def test_statement_without_a_result_gives_no_rows(run):
    assert run(["SET application_name = 'test'"]) == [[]]


@pytest.mark.parametrize(
    ("sql", "error", "cause"),
    [
        ("SELECT 1 / %s", DataError, psycopg.errors.DivisionByZero),
        ("SELECT nonsense, %s", ProgrammingError, psycopg.errors.UndefinedColumn),
        ("SELECT %s; SELECT 2", ProgrammingError, psycopg.errors.SyntaxError),
        # At the COMMIT.
        (
            "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, 'no user', 1)",
            IntegrityError,
            psycopg.errors.ForeignKeyViolation,
        ),
    ],
)
def test_error_is_that_of_a_cursor(run, sql, error, cause):
    with pytest.raises(error) as caught:
        run([sql, 0])
    assert type(caught.value.__cause__) is cause
    assert run(["SELECT 1"]) == [[(1,)]]


@pytest.mark.parametrize("qty", [2**31, 2**32 + 5, 2**63, -(2**64) + 1])
def test_integer_that_does_not_fit_its_column_is_refused_and_not_cut_off(run, qty):
    with pytest.raises(DataError) as caught:
        run(["SELECT %s::bigint, %s::bigint", 1, 2**20], ["SELECT %s::integer", qty])
    assert type(caught.value.__cause__) is psycopg.errors.NumericValueOutOfRange


def test_longer_values_than_a_socket_takes_at_once(run):
    long = "x" * 4_000_000
    assert run(*[["SELECT %s::text", long]] * 4) == [[(long,)]] * 4


# --- What stays prepared

PREPARED = "SELECT statement FROM pg_prepared_statements"


@own_session
def test_the_statements_that_were_used_last_stay_prepared(run):
    statements = [each for number in range(MAX_STATEMENTS + 20) for each in ([f"SELECT {number}"], ["SELECT 'often'"])]
    *found, known, again = run(*statements, [PREPARED], ["SELECT 20"])
    assert found[::2] == [[(number,)] for number in range(MAX_STATEMENTS + 20)]
    assert again == [(20,)]
    names = {statement for (statement,) in known}
    assert len(names) == MAX_STATEMENTS
    assert {"SELECT 'often'", f"SELECT {MAX_STATEMENTS + 19}"} < names
    assert "SELECT 20" not in names


@own_session
def test_more_statements_in_one_flush_than_stay_prepared_are_closed_as_others_come(run_together, monkeypatch):
    monkeypatch.setattr("config.fastpath.postgresql.pipeline.SECONDS_TO_BE_LATE", 60.0)
    monkeypatch.setattr("config.fastpath.greenlets.SECONDS_BEFORE_YIELD", 60.0)
    count = MAX_STATEMENTS + 20

    def run(number):
        # In one flush, and in the next ones of them all.
        found = [get_connection("default").run(f"SELECT {number + each * count}", []) for each in range(3)]
        return found, get_connection("default").run(PREPARED, []) if number == 0 else []

    (found, prepared), *others = run_together(*(lambda number=number: run(number) for number in range(count)))
    assert [found, *(each for each, _ in others)] == [[[(n + e * count,)] for e in range(3)] for n in range(count)]
    assert len(prepared) <= count


@own_session
def test_statements_of_a_transaction_that_knows_one_no_more_are_prepared_once(run_together, monkeypatch):
    monkeypatch.setattr("config.fastpath.postgresql.pipeline.SECONDS_TO_BE_LATE", 60.0)
    gone, kept, nothing = "SELECT 'gone'", "SELECT 'kept'", "SELECT 1"

    def run(sql, *values):
        return get_connection("default").run(sql, values, shared_transaction=True)

    def ask_and_deallocate():
        run(gone)
        ((name,),) = run("SELECT name FROM pg_prepared_statements WHERE statement = %s", gone)
        run(f'DEALLOCATE "{name}"')
        return run(gone)

    def ask():
        # In the same flushes.
        run(kept), run(nothing), run(nothing)
        return run(kept), run("SELECT count(*) FROM pg_prepared_statements WHERE statement = %s", kept)

    assert run_together(ask_and_deallocate, ask) == [[("gone",)], ([("kept",)], [(1,)])]


@own_session
def test_column_that_gets_another_type_is_read_as_such(run):
    ask = "SELECT value FROM changing"
    found = run(
        ["CREATE TABLE changing AS SELECT 1 AS value"],
        [ask],
        ["ALTER TABLE changing ALTER value TYPE jsonb USING to_jsonb(value)"],
        [ask],
        [ask],
        [f"{PREPARED} WHERE statement = %s", ask],
        ["DROP TABLE changing"],
    )
    assert found[1:-1] == [[(1,)], [], [("1",)], [("1",)], [(ask,)]]


# --- Beside requests: a cursor


def test_statement_is_seen_by_execute_wrappers_and_the_log(db):
    seen = []

    def wrap(execute, sql, params, many, context):
        seen.append((sql, params))
        return execute(sql, params, many, context)

    with CaptureQueriesContext(connection) as captured:
        assert connection.run("SELECT %s::int", [7]) == [(7,)]
    assert [query["sql"] for query in captured] == ["SELECT $1::int"]
    with connection.execute_wrapper(wrap):
        assert connection.run("SET LOCAL application_name = 'test'", []) == []
    assert seen == [("SET LOCAL application_name = 'test'", [])]
