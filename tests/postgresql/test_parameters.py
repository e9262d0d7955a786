"""Parameters of PostgreSQL behind a pooler: each transaction has them, and no connection keeps them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from config.postgresql.database_url import with_parameters
from config.postgresql.snapshots import snapshot

SHOW = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"


@pytest.fixture
def pooled(transactional_db: None) -> Iterator[psycopg.Connection]:
    """The connection of this thread, as if a pooler were in between."""
    before = connection.settings_dict
    connection.close()
    pooled = with_parameters(before | {"POOLER": True}, statement_timeout="2s", lock_timeout="7ms")
    connection.settings_dict = pooled
    connection.ensure_connection()
    yield connection.connection
    connection.close()
    connection.settings_dict = before


def show() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(SHOW)
        return cursor.fetchone()


def test_statement_outside_of_a_transaction_has_them(pooled: psycopg.Connection) -> None:
    assert show() == ("2s", "7ms")
    assert pooled.execute(SHOW).fetchone() == ("0", "0")


def test_transaction_has_them_from_its_first_statement_on(pooled: psycopg.Connection) -> None:
    with transaction.atomic():
        assert [show(), show()] == [("2s", "7ms")] * 2
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '9ms'")
        assert show() == ("2s", "9ms")
    assert pooled.execute(SHOW).fetchone() == ("0", "0")


def test_long_read_has_its_own_limits_beside_them(pooled: psycopg.Connection) -> None:
    with snapshot("default", 30):
        assert show() == ("30s", "7ms")
    assert pooled.execute(SHOW).fetchone() == ("0", "0")


def test_error_is_that_of_the_statement_and_the_connection_stays_usable(pooled: psycopg.Connection) -> None:
    with pytest.raises(OperationalError) as caught, connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [5])
    assert isinstance(caught.value.__cause__, psycopg.errors.QueryCanceled)
    assert show() == ("2s", "7ms")
    assert connection.connection is pooled
