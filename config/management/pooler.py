"""Whether the pooler between the service and PostgreSQL is one that the service can work with."""

import secrets
from typing import Any

from django.db import OperationalError, connection
from psycopg.pq import DiagnosticField, ExecStatus

_UNKNOWN_STATEMENT = b"26000"  # invalid_sql_statement_name


def keeps_prepared_statements() -> bool:
    """Whether a statement that was prepared on one connection of the pooler's can be run on another one.

    Raises:
        django.db.OperationalError: that could not be tried.
    """
    first: Any = connection.copy()
    second: Any = connection.copy()
    name = secrets.token_hex(8).encode()
    try:
        first.ensure_connection()
        prepared = first.connection.pgconn.prepare(name, b"SELECT 1")
        # Its transaction has the connection that was used last.
        second.set_autocommit(False)
        with second.cursor() as cursor:
            cursor.execute("SELECT 1")
        found = first.connection.pgconn.exec_prepared(name, [])
    finally:
        first.close()
        second.close()
    for result in (prepared, found):
        if result.status == ExecStatus.FATAL_ERROR:
            if result.error_field(DiagnosticField.SQLSTATE) == _UNKNOWN_STATEMENT:
                return False
            raise OperationalError(result.get_error_message())
    return True
