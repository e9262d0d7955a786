"""A prepared statement does what it does in a cursor of Django, and is parsed once for a connection."""

import psycopg
import pytest
from django.db import DataError, IntegrityError, ProgrammingError, connection
from django.test.utils import CaptureQueriesContext

from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.statements import MAX_STATEMENTS
from tests.conftest import own_session


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
