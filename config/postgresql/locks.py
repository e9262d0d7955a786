"""Locks that PostgreSQL holds until the transaction ends."""

from typing import Any

from django.db import connection, connections, router
from django.db.models import QuerySet


def advisory_lock(number: int) -> None:
    """Waits for an advisory lock.

    Args:
        number: a 64-bit integer that stands for one thing in the whole service.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def try_advisory_lock(number: int) -> bool:
    """Takes an advisory lock, and never waits for it. False when another transaction has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        return bool(cursor.fetchone()[0])


def lock_key_share(rows: QuerySet[Any]) -> bool:
    """Locks rows FOR KEY SHARE. False when there are none.

    A foreign key takes the same lock: it delays the deletion of a row and FOR UPDATE, and no other write.
    """
    sql, params = rows.order_by().values("pk").query.sql_with_params()
    with connections[router.db_for_write(rows.model)].cursor() as cursor:
        cursor.execute(f"{sql} FOR KEY SHARE", params)
        return cursor.fetchone() is not None
