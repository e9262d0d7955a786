"""The patience of the fast lane: what exceeds its time-outs is rolled back, and run again in the slow lane."""

from collections.abc import Callable
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper
from psycopg.errors import LockNotAvailable, QueryCanceled

from config.http.lanes import leave_fast_lane
from config.http.request_state import present_state
from config.postgresql.parameters import with_parameters

# A write waits for another one's COMMIT, which takes a few milliseconds; whoever waits longer waits for something slow.
LOCK_MILLISECONDS = 25
# Most statements take less than one millisecond. On a busy machine they take several times as long.
STATEMENT_MILLISECONDS = 75


class _ImpatientErrorWrapper(DatabaseErrorWrapper):
    """Django's translation of errors, through which every error of the connection passes first.

    PostgreSQL ends a statement, and never a COMMIT: what has timed out is rolled back.
    """

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, QueryCanceled | LockNotAvailable):
            state = present_state.get()
            if state is not None and not state.has_committed:
                leave_fast_lane()
        super().__exit__(kind, error, traceback)


def shorten_waits(connection: BaseDatabaseWrapper) -> None:
    """Gives a connection that is not open yet the time-outs of the fast lane.

    Args:
        connection: of the thread in which the fast lane runs.
    """
    connection.settings_dict = with_parameters(
        connection.settings_dict,
        lock_timeout=f"{LOCK_MILLISECONDS}ms",
        statement_timeout=f"{STATEMENT_MILLISECONDS}ms",
    )
    connection.wrap_database_errors = _ImpatientErrorWrapper(connection)  # a cached property


def refuse_to_connect(connection: BaseDatabaseWrapper, is_in_vain: Callable[[], bool]) -> None:
    """Has a connection not be made where that is known to be in vain: the loop stands still while it is waited for.

    Args:
        connection: of the thread in which the fast lane runs.
        is_in_vain: tells it. Whoever connects then meets django.db.OperationalError.
    """
    connect = connection.get_new_connection

    def get_new_connection(parameters: Any) -> Any:
        if is_in_vain():
            raise OperationalError("The database does not answer.")
        return connect(parameters)

    connection.get_new_connection = get_new_connection  # type: ignore[assignment, method-assign]
