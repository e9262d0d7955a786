"""Migrations when several processes, or several machines, start at the same time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import CommandError, call_command
from django.db import connection, connections

# The key of an advisory lock, which nothing else on this database uses.
SETUP_LOCK = 5_806_133_971
SECONDS_BETWEEN_ATTEMPTS = 0.1
# The first with the collation `pg_c_utf8`.
MIN_VERSION = 17


@contextmanager
def setup_lock() -> Iterator[None]:
    """Excludes other processes that set up the same database, until the block ends."""
    with connection.cursor() as cursor:
        # Migrating a big table may take longer than a request may.
        cursor.execute("SET statement_timeout = 0")
        # A statement that waited for the lock would hold a snapshot, for whose end CREATE INDEX CONCURRENTLY waits.
        while not _try_to_lock(cursor):
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)
    try:
        yield
    finally:
        # Ends the session, and with it the lock and the settings, even if the connection is broken.
        connection.close()


def _try_to_lock(cursor: Any) -> bool:
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [SETUP_LOCK])
    return bool(cursor.fetchone()[0])


def refuse_old_server(using: str, **options: object) -> None:
    """Called before migrations.

    Raises:
        CommandError: PostgreSQL is older than what they need.
    """
    version = int(connections[using].pg_version) // 10_000  # type: ignore[attr-defined]
    if version < MIN_VERSION:
        raise CommandError(f"This is PostgreSQL {version}; the service needs PostgreSQL {MIN_VERSION} or later.")


def migrate() -> None:
    """Applies the missing migrations without output."""
    call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


def migrate_new_database() -> None:
    """Applies the migrations if the database has none yet, so that a command works in a fresh checkout."""
    with setup_lock():
        if "django_migrations" not in connection.introspection.table_names():
            migrate()
