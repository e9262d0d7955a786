"""Bringing the tables up to date when several processes, or several machines, start at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection

# Any number does that nothing else on this database uses for an advisory lock.
LOCK = 5_806_133_971


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Holds back every other process that wants to set up the same database, until the block ends."""
    with connection.cursor() as cursor:
        # Waiting for another machine, and a migration of a big table, take longer than any request may.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        # But a migration must not queue for a table behind a long query, and the requests behind the migration.
        cursor.execute("RESET lock_timeout")
    try:
        yield
    finally:
        # Ends the session, and with it the lock and the settings, also when the connection is beyond repair.
        connection.close()


def migrate() -> None:
    """Applies the migrations that are missing, silently."""
    call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


def migrate_new_database() -> None:
    """Applies the migrations to a database that never saw any, so that a command works in a fresh checkout."""
    with one_at_a_time():
        if "django_migrations" not in connection.introspection.table_names():
            migrate()
