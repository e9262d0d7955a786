"""Migrations when several processes, or several machines, start at the same time."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from django.core.management import call_command
from django.core.management.commands import migrate as django_migrate
from django.db import connection

from config.management.command import direct_connection

# The key of an advisory lock, which nothing else on this database uses.
SETUP_LOCK = 5_806_133_971
SECONDS_BETWEEN_ATTEMPTS = 0.1


@contextmanager
def setup_lock() -> Iterator[None]:
    """Excludes other processes that set up the same database, until the block ends, on a direct connection.

    PostgreSQL ends the lock with this connection.
    """
    with direct_connection(), connection.cursor() as cursor:
        # A statement that waited for the lock would hold a snapshot, for whose end CREATE INDEX CONCURRENTLY waits.
        for attempt in count():
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [SETUP_LOCK])
            if cursor.fetchone()[0]:
                break
            if not attempt:
                print("Waiting for another process that is setting up the database.", file=sys.stderr, flush=True)
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)
        yield


def migrate() -> None:
    """Applies the missing migrations without output. To be called with `setup_lock`."""
    call_command(django_migrate.Command(), interactive=False, verbosity=0, skip_checks=True)


def migrate_new_database() -> None:
    """Applies the migrations if the database has none yet, so that a command works in a fresh checkout."""
    with setup_lock():
        if "django_migrations" not in connection.introspection.table_names():
            migrate()
