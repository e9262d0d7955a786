"""Queries a database on a connection of this thread, with a deadline."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from config.postgresql.connections import cut_after


def ask(connection: BaseDatabaseWrapper, sql: str, seconds: float) -> tuple[Any, ...]:
    """The first row that a statement gives.

    A server or a network that is silent is not waited for: no time-out of PostgreSQL's holds there.

    Args:
        connection: of this thread, outside of a transaction.
        sql: one statement, without values.
        seconds: how long the answer may take.

    Raises:
        django.db.Error: the database is unavailable, refuses, or does not answer in time.
    """
    connection.ensure_connection()
    with cut_after(seconds, connection), connection.cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
        return row
