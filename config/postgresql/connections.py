"""Connections of Django's that wait in vain for a database, or have lost it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import psycopg
from django.db import connections
from psycopg.pq import TransactionStatus

# No time-out of PostgreSQL's holds where nothing comes from it. A busy machine may be late.
MAX_SECONDS_OF_SILENCE = 3.0
# Whether something has come.
SECONDS_BETWEEN_LOOKS = 0.25


def cut_if_waiting(connection: Any) -> bool:
    """Ends a connection of Django's where another thread waits for an answer. Returns whether it does."""
    raw = connection.connection
    if not _is_active(raw):
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


def _is_active(raw: Any) -> bool:
    return raw is not None and raw.pgconn.transaction_status == TransactionStatus.ACTIVE


def close_if_lost(alias: str) -> bool:
    """Makes the next query of this thread reconnect if its connection is lost. Returns whether it is."""
    connection = connections[alias]
    if connection.connection is not None and not connection.connection.closed:
        return False
    connection.close()
    return True
