"""How many statements a request sends, and how long they take. BEGIN and COMMIT are not among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from time import perf_counter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus

from config.http.request_state import get_spent
from config.postgresql.transactions import is_refused_by_standby


def measure(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """A wrapper of Django's (`execute_wrappers`), in which each statement of a cursor is run."""
    began, cause = perf_counter(), None
    try:
        return execute(sql, params, many, context)
    except BaseException as error:
        # Of Django's translation of it, and of whatever took the place of that.
        cause = error.__cause__ or error.__context__
        if is_refused_by_standby(cause):
            # The next request opens a new connection: this one's server is not the primary any more.
            context["connection"].close_at = time.monotonic()
        raise
    finally:
        get_spent().add(sql, perf_counter() - began, cause)


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
