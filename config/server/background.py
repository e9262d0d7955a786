"""Work that a process repeats beside its requests: in a thread, on a database connection of its own."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from django.db import connections

from config.postgresql.transactions import is_unavailable

logger = logging.getLogger(__name__)

# For what is left when a process ends, however slow its reader is. `serve` kills a worker after 20 s.
SECONDS_TO_STOP = 1.0


class Repetition:
    """Calls a function again and again until it is stopped.

    Args:
        function: is called first after `seconds`; its exceptions are logged.
        seconds: between the end of a call and the next one.
        keeps_connection: whether its database connection stays open in between.
        is_called_at_end: whether it is called once more when it is stopped.
    """

    def __init__(
        self,
        function: Callable[[], None],
        seconds: float,
        *,
        keeps_connection: bool = False,
        is_called_at_end: bool = False,
    ) -> None:
        self._function, self._seconds, self._keeps_connection = function, seconds, keeps_connection
        self._is_called_at_end = is_called_at_end
        self._stopped = Event()
        self._thread = Thread(target=self._repeat, name=function.__qualname__, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_stopped(self) -> bool:
        """Whether it is to end: a call that takes long asks."""
        return self._stopped.is_set()

    def stop(self, seconds: float | None = None) -> bool:
        """Ends the thread, after the call that is under way.

        Args:
            seconds: for which it is waited for, at most.

        Returns:
            Whether it has ended.
        """
        self._stopped.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _repeat(self) -> None:
        while not self._stopped.wait(self._seconds):
            self._call()
            if not self._keeps_connection:
                connections.close_all()
        if self._is_called_at_end:
            self._call()
        connections.close_all()

    def _call(self) -> None:
        try:
            self._function()
        except Exception as error:
            # While the database is unavailable, other parts of the service say so.
            if not is_unavailable(error):
                logger.exception("%s failed", self._function.__qualname__)
