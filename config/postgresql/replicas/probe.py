"""Asks a database on a connection of this thread, and waits no longer than it is told."""

import select
import time
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import ExecStatus


def ask(connection: BaseDatabaseWrapper, sql: str, seconds: float) -> tuple[str | None, ...]:
    """The first row that a statement gives, as PostgreSQL writes its values.

    A server or a network that is silent is not waited for: no time-out of PostgreSQL's holds there.

    Args:
        connection: of this thread, outside of a transaction.
        sql: one statement, without values.
        seconds: how long the answer may take.

    Raises:
        django.db.Error, psycopg.Error: the database is away, refuses, or does not answer in time.
    """
    connection.ensure_connection()
    pgconn: Any = connection.connection.pgconn
    deadline = time.monotonic() + seconds
    readable = select.poll()
    readable.register(pgconn.socket, select.POLLIN)
    pgconn.send_query(sql.encode())
    pgconn.flush()
    while pgconn.is_busy():
        if not readable.poll(max(0.0, deadline - time.monotonic()) * 1000):
            # A late answer would be taken for that to the next question.
            pgconn.finish()
            raise OperationalError("The database does not answer.")
        pgconn.consume_input()
    row: tuple[str | None, ...] = ()
    while result := pgconn.get_result():
        if result.status != ExecStatus.TUPLES_OK:
            raise OperationalError("The database answers with an error.")
        row = tuple(_decode(result.get_value(0, column)) for column in range(result.nfields))
    return row


def _decode(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
