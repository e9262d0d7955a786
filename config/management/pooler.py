"""Whether the pooler between the service and PostgreSQL is one that the service can work with."""

import secrets
from typing import Any

from django.db import connection
from psycopg.pq import ExecStatus

LOSES_STATEMENTS = (
    "the pooler loses prepared statements; take PgBouncer 1.21 or later, with max_prepared_statements above 0"
)


def keeps_prepared_statements() -> bool:
    """Whether a statement that was prepared on one connection of the pooler's can be run on another one."""
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
    return (prepared.status, found.status) == (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
