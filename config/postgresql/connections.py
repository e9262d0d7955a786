"""Connections of Django's that wait in vain for a database, or have lost it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any
from weakref import WeakSet

import psycopg
from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus

# No time-out of PostgreSQL's holds where nothing comes from it. A busy machine may be late.
MAX_SECONDS_OF_SILENCE = 3.0
# Whether something has come.
SECONDS_BETWEEN_LOOKS = 0.25


# The connections of this process, where there are replicas: without them, nobody ends what waits.
_known: WeakSet[Any] = WeakSet()
_known_lock = Lock()


@receiver(connection_created)
def _note(connection: Any, **options: object) -> None:
    # Each transaction of the fast path makes one.
    if settings.REPLICAS:
        with _known_lock:
            _known.add(connection)


def cut_waiting(alias: str) -> int:
    """Ends what waits for a database in vain. Returns how many connections that were."""
    with _known_lock:
        known = [each for each in _known if each.alias == alias]
    return sum(map(cut_if_waiting, known))


def cut_if_waiting(connection: Any) -> bool:
    """Ends a connection of Django's where another thread waits for an answer. Returns whether it does."""
    raw = connection.connection
    if raw is None or raw.pgconn.transaction_status != TransactionStatus.ACTIVE:
        return False
    # A copy, because the descriptor itself belongs to libpq.
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
    return True


@contextmanager
def cut_after(seconds: float, connection: Any) -> Iterator[None]:
    """Ends a Django connection if this thread still waits for a result after a number of seconds.

    No time-out of PostgreSQL's holds where nothing comes from it. This takes a thread: it is for what is done seldom.
    """
    # Django's proxy would be another connection in the thread of the timer.
    timer = Timer(seconds, cut_if_waiting, [connections[connection.alias]])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ask(connection: Any, sql: str, seconds: float) -> tuple[Any, ...]:
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
        return cursor.fetchone()


def close_if_lost(alias: str) -> bool:
    """Makes the next query of this thread reconnect if its connection is lost. Returns whether it is."""
    connection = connections[alias]
    if connection.connection is not None and not connection.connection.closed:
        return False
    connection.close()
    return True
