"""Whether the database answers, known without asking it: a thread of its own asks again and again.

A request that asks the database waits where everything waits for it. A probe that is asked of a service whose database
hangs must get its answer all the same.
"""

import time

import psycopg
from django.db import Error, OperationalError, connection

from config.postgresql.connections import MAX_SECONDS_OF_SILENCE, SECONDS_BETWEEN_LOOKS, ask
from config.postgresql.replicas.watch import goes_on_without_primary
from config.server.background import Repetition

# With the time between two questions and that which the answer may take, the last good answer is at most so old.
MAX_AGE_SECONDS = 1.0


class Probe:
    """Asks the database on a connection that nothing else uses, and remembers when it last answered.

    Attributes:
        is_running: whether it asks.
    """

    def __init__(self) -> None:
        self._answered = 0.0
        self.is_running = False

    def has_answered(self, seconds: float) -> bool:
        """Whether the database answered a question that is at most so old."""
        return time.monotonic() - self._answered <= seconds

    @property
    def is_silent(self) -> bool:
        """Whether the database has not answered for so long that no request should be made to wait for it.

        Nothing is known of it before the probe runs: its first question connects, which may take as long.
        """
        return self.is_running and not self.has_answered(MAX_SECONDS_OF_SILENCE)

    def start(self) -> None:
        self.is_running = True
        Repetition(self.ask, SECONDS_BETWEEN_LOOKS, keeps_connection=True).start()

    def ask(self) -> None:
        asked = time.monotonic()
        try:
            ask(connection, "SELECT 1", MAX_AGE_SECONDS)
        except (Error, psycopg.Error):
            connection.close()
        else:
            self._answered = asked


probe = Probe()


def check() -> None:
    """Asks the probe or, if none runs, as under a server other than `serve`, the database.

    If reads continue without a primary, the service is ready without it.

    Raises:
        OperationalError: the database did not answer within the last second.
    """
    if not probe.is_running:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    elif not probe.has_answered(MAX_AGE_SECONDS) and not goes_on_without_primary():
        raise OperationalError("The database does not answer.")
