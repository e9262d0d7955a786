"""Which errors say that the database is unavailable."""

import time

import psycopg
import pytest
from django.db import DatabaseError, InternalError, connection
from psycopg.errors import error_from_result

from config.postgresql.connections import ask, cut_if_waiting
from config.postgresql.transactions import is_unavailable


@pytest.mark.django_db(transaction=True)
def test_loss_of_a_connection_that_libpq_alone_tells_is_unavailability() -> None:
    connection.ensure_connection()
    pgconn = connection.connection.pgconn
    pgconn.send_query_params(b"SELECT pg_sleep(10)", None)
    assert cut_if_waiting(connection)
    with pytest.raises(DatabaseError) as raised, connection.wrap_database_errors:
        raise error_from_result(pgconn.get_result())
    connection.close()
    # PostgreSQL gives a code to each error that it tells.
    assert type(raised.value) is DatabaseError
    assert is_unavailable(raised.value)


@pytest.mark.django_db(transaction=True)
def test_result_that_is_followed_by_another_one_is_unavailability() -> None:
    """As of a COMMIT, after which a pooler tells that it has lost the server."""
    connection.ensure_connection()
    raw = connection.connection
    with pytest.raises(InternalError) as raised, connection.wrap_database_errors:
        raw.wait(raw._exec_command(b"SELECT 1; SELECT 2"))
    connection.close()
    assert is_unavailable(raised.value)


@pytest.mark.django_db(transaction=True)
def test_fault_of_ours_that_postgresql_tells_is_no_unavailability() -> None:
    with pytest.raises(DatabaseError) as raised, connection.cursor() as cursor:
        cursor.execute("COMMIT; SAVEPOINT nowhere")
    connection.close()
    assert not is_unavailable(raised.value)


@pytest.mark.django_db(transaction=True)
def test_standby_that_takes_no_writes_is_unavailability() -> None:
    with pytest.raises(InternalError) as raised, connection.cursor() as cursor:
        cursor.execute("BEGIN READ ONLY; CREATE TABLE anything (id integer)")
    connection.close()
    assert is_unavailable(raised.value)


@pytest.mark.django_db(transaction=True)
def test_question_to_a_silent_database_ends() -> None:
    """Of the connection of this thread, which a timer ends."""
    started = time.monotonic()
    with pytest.raises(DatabaseError):
        ask(connection, "SELECT pg_sleep(10)", 0.2)
    assert time.monotonic() - started < 5
    connection.close()


@pytest.mark.parametrize("error", [psycopg.OperationalError("lost"), psycopg.InterfaceError("closed")])
def test_errors_that_django_leaves_as_they_are_say_that_the_database_is_away(error: psycopg.Error) -> None:
    """Those of a server-side cursor, while its rows are read."""
    assert is_unavailable(error)
