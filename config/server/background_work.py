"""What the service does beside the requests, until the process is stopped: what is left to do is in the database."""

from collections.abc import Callable

from django.conf import settings
from django.db import close_old_connections
from django.utils.module_loading import import_string

from config.postgresql.transactions import is_unavailable
from config.server.background import Repetition

SECONDS_BETWEEN_LOOKS = 0.5


def build_repetition() -> Repetition:
    """Does the BACKGROUND_WORK of the settings, one after the other, on one connection."""

    def work() -> None:
        for name in settings.BACKGROUND_WORK:
            _do(import_string(name), repetition.is_stopped)

    repetition = Repetition(work, SECONDS_BETWEEN_LOOKS, keeps_connection=True)
    return repetition


def _do(work: Callable[..., object], is_stopped: Callable[[], bool]) -> None:
    close_old_connections()
    try:
        work(is_stopped=is_stopped)
    except Exception as error:
        # While the database is away, other parts of the service say so.
        if not is_unavailable(error):
            raise
