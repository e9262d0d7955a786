"""Wrappers of each cursor statement: they count and time the statements of a request, and send the actor.

BEGIN and COMMIT are not among them.
"""

import json
import re
import time
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus

from config.http.request_state import get_actor, get_spent, present_state
from config.postgresql.events import ACTOR, get_tracked
from config.postgresql.transactions import is_refused_by_standby


def measure(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """A wrapper of Django's (`execute_wrappers`), in which each statement of a cursor is run."""
    began, cause = perf_counter(), None
    try:
        return execute(sql, params, many, context)
    except BaseException as error:
        # The cause of Django's translated exception, or of one that replaced it.
        cause = error.__cause__ or error.__context__
        if is_refused_by_standby(cause):
            # The next request opens a new connection: this one's server is no longer the primary.
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


def tell_actor(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    """A wrapper that sends the actor along with a statement that writes events, in one transaction and at once."""
    if not settings.EVENTS or not _get_pattern().match(str(sql)) or (actor := build_actor()) is None:
        return execute(sql, params, many, context)
    connection = context["connection"]
    if not connection.in_atomic_block:
        with transaction.atomic(using=connection.alias):
            return tell_actor(execute, sql, params, many, context)
    with connection.wrap_database_errors, connection.connection.pipeline():
        connection.connection.execute(f"SELECT set_config('{ACTOR}', %s, true)", [json.dumps(actor)])
        return execute(sql, params, many, context)


def build_actor() -> list[Any] | None:
    """The actor of the current request, as events.ACTOR has it; None outside of requests."""
    state = present_state.get()
    if state is None or state.request is None:
        return None
    user, kind = get_actor(state)
    return [user.pk, kind, state.request_id] if user else [None, None, state.request_id]


@cache
def _get_pattern() -> re.Pattern[str]:
    tables = "|".join(each.model._meta.db_table for each in get_tracked())
    return re.compile(rf'\s*(?:INSERT INTO|UPDATE|DELETE FROM) "?(?:{tables})\b')


WRAPPERS = [measure, tell_actor]
POOLED_WRAPPERS = [measure, set_local, tell_actor]


@receiver(connection_created)
def _install(connection: BaseDatabaseWrapper, **options: Any) -> None:
    own = POOLED_WRAPPERS if connection.settings_dict.get("SET_LOCAL") else WRAPPERS
    # In front: code that wraps a block in its own wrapper removes the last one afterwards.
    connection.execute_wrappers[:] = own + [each for each in connection.execute_wrappers if each not in POOLED_WRAPPERS]
