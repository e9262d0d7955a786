"""How many statements a request sends, and how long they take. BEGIN and COMMIT are not among them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus


class Spent:
    """What a request has asked of the database so far.

    Attributes:
        statements: how many it has sent.
        seconds: that it has waited for them. Those of several requests that are sent together are waited for together.
        lock_timeouts: how many of them were ended because they waited for a lock.
    """

    __slots__ = ("lock_timeouts", "seconds", "statements")

    def __init__(self) -> None:
        self.statements = self.lock_timeouts = 0
        self.seconds = 0.0

    def add(self, statements: Sequence[Sequence[Any]], began: float, seconds: float) -> None:
        """Counts statements that were sent together.

        Args:
            statements: the SQL of each, and the values behind it.
            began: when they were sent, by `time.perf_counter`.
            seconds: that they were waited for.
        """
        self.statements += len(statements)
        self.seconds += seconds

    def fail(self, error: BaseException | None) -> None:
        """Is told of an error before the statements that met it are added.

        Args:
            error: psycopg's, or whatever else ended them.
        """
        self.lock_timeouts += isinstance(error, LockNotAvailable)


spent: ContextVar[Spent] = ContextVar("spent", default=Spent())  # noqa: B039 - nobody reads it
"""Of the present request; the default is for what is asked beside them."""


def measure(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """A wrapper of Django's (`execute_wrappers`), in which each statement of a cursor is run."""
    present = spent.get()
    began = perf_counter()
    try:
        return execute(sql, params, many, context)
    except BaseException as error:
        # Of Django's translation of it, and of whatever took the place of that.
        cause = error.__cause__ or error.__context__
        present.fail(cause)
        if isinstance(cause, ReadOnlySqlTransaction):
            # The next request opens a new connection: this one's server is not the primary any more.
            context["connection"].close_at = time.monotonic()
        raise
    finally:
        present.add(((sql, params),), began, perf_counter() - began)


def set_local(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """A wrapper that lets a transaction begin with the parameters of its connection, which a pooler does not keep.

    A statement outside of a transaction is sent with them in one, at once (libpq's pipeline mode).
    """
    connection = context["connection"]
    statement, raw = connection.settings_dict.get("SET_LOCAL"), connection.connection
    if not statement or raw.pgconn.transaction_status != TransactionStatus.IDLE:
        return execute(sql, params, many, context)
    # PostgreSQL wants it to be the first one.
    is_first = str(sql).startswith("SET TRANSACTION")
    with connection.wrap_database_errors, raw.pipeline():
        if not is_first:
            raw.execute(statement)
        result = execute(sql, params, many, context)
        if is_first:
            raw.execute(statement)
    return result


WRAPPERS = [measure]
POOLED_WRAPPERS = [measure, set_local]


@receiver(connection_created)
def _install(connection: BaseDatabaseWrapper, **options: Any) -> None:
    own = POOLED_WRAPPERS if connection.settings_dict.get("SET_LOCAL") else WRAPPERS
    # In front: whoever puts one of its own around a block takes the last one away after it.
    connection.execute_wrappers[:] = own + [each for each in connection.execute_wrappers if each not in POOLED_WRAPPERS]
