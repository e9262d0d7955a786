"""Migrations when several processes, or several machines, start at the same time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection

# The key of an advisory lock, which nothing else on this database uses.
SETUP_LOCK = 5_806_133_971


@contextmanager
def setup_lock() -> Iterator[None]:
    """Excludes other processes that set up the same database, until the block ends."""
    with connection.cursor() as cursor:
        # Waiting for another machine and migrating a big table may take longer than a request may.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [SETUP_LOCK])
        # But a migration must not wait long for a table lock: requests would queue behind it.
        cursor.execute("RESET lock_timeout")
    try:
        yield
    finally:
        # Ends the session, and with it the lock and the settings, even if the connection is broken.
        connection.close()


def migrate() -> None:
    """Applies the missing migrations without output."""
    call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


def migrate_new_database() -> None:
    """Applies the migrations if the database has none yet, so that a command works in a fresh checkout."""
    with setup_lock():
        if "django_migrations" not in connection.introspection.table_names():
            migrate()
