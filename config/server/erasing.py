"""Erases the rows of removed users beside the requests, until the process is stopped."""

from collections.abc import Callable

from django.db import close_old_connections

from config import erasure
from config.postgresql.transactions import is_unavailable
from config.server.background import Repetition

SECONDS_BETWEEN_LOOKS = 0.5


def build_repetition() -> Repetition:
    def erase() -> None:
        _erase(repetition.is_stopped)

    repetition = Repetition(erase, SECONDS_BETWEEN_LOOKS, keeps_connection=True)
    return repetition


def _erase(is_stopped: Callable[[], bool]) -> None:
    close_old_connections()
    try:
        erasure.erase(is_stopped=is_stopped)
    except Exception as error:
        # While the database is away, other parts of the service say so.
        if not is_unavailable(error):
            raise
