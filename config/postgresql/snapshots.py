"""Long reads: everything of one moment, for a bounded time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction

# A first row may have to wait until all rows are sorted.
SECONDS_OF_A_STATEMENT = 60


@contextmanager
def snapshot(alias: str, seconds: int) -> Iterator[None]:
    """A transaction that reads and sees one state of the database. Inside another transaction, it is a part of that.

    PostgreSQL removes no dead row that it may still see, so it must not last long, whatever it waits for.

    Args:
        alias: of the database.
        seconds: after which PostgreSQL ends the transaction and its connection.
    """
    connection = connections[alias]
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic(using=alias):
        with connection.cursor() as cursor:
            # Before the first statement, with which the snapshot is taken.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(
                "SELECT set_config('transaction_timeout', %s, true), set_config('statement_timeout', %s, true)",
                [f"{seconds}s", f"{min(seconds, SECONDS_OF_A_STATEMENT)}s"],
            )
        before = connection.settings_dict
        # A pooler, too, gives all statements of a transaction to one connection.
        connection.settings_dict = {**before, "DISABLE_SERVER_SIDE_CURSORS": False}
        try:
            yield
        finally:
            connection.settings_dict = before
