"""Erases the rows of removed users beside the requests, in turns, so that a process that is stopped need not wait."""

import time

from django.db import close_old_connections

from config import erasure
from config.postgresql.transactions import is_unavailable
from config.server.background import Repetition

SECONDS_OF_A_TURN = 1.0
SECONDS_BETWEEN_TURNS = 0.5


def build_repetition() -> Repetition:
    return Repetition(_erase, SECONDS_BETWEEN_TURNS, keeps_connection=True)


def _erase() -> None:
    close_old_connections()
    end = time.monotonic() + SECONDS_OF_A_TURN
    try:
        erasure.erase(is_stopped=lambda: time.monotonic() > end)
    except Exception as error:
        # While the database is away, other parts of the service say so.
        if not is_unavailable(error):
            raise
