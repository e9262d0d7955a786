"""Which errors say that the database is unavailable."""

import psycopg
import pytest
from django.db import DatabaseError, connection
from psycopg.errors import error_from_result

from config.postgresql.connections import cut_if_waiting
from config.postgresql.transactions import is_unavailable

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'UR001'; END $$"


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
def test_error_with_a_code_of_no_class_is_a_fault() -> None:
    with pytest.raises(DatabaseError) as raised, connection.cursor() as cursor:
        cursor.execute(RAISE)
    assert type(raised.value) is DatabaseError
    assert not is_unavailable(raised.value)
    assert not is_unavailable(DatabaseError("Forced update did not affect any rows."))


@pytest.mark.parametrize("error", [psycopg.OperationalError("lost"), psycopg.InterfaceError("closed")])
def test_errors_that_django_leaves_as_they_are_say_that_the_database_is_away(error: psycopg.Error) -> None:
    """Those of a server-side cursor, while its rows are read."""
    assert is_unavailable(error)
