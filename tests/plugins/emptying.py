"""Empties the tables behind a test that commits, in a fiftieth of the time that Django takes.

Django truncates all tables, which makes new files for each of them and its indexes, and adds all content types and
permissions anew. Here these stay, and of the others the few rows that a test leaves are deleted, without triggers:
nothing has to be counted or checked.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db.backends.postgresql.operations import DatabaseOperations

FILLED_BY_MIGRATE = frozenset({"django_content_type", "auth_permission", "config_eventepoch"})
# Deleted rows stay where they are, and make each look longer at a table that grew.
MAX_BYTES = 128 * 1024
_EMPTY = """
DO $$
DECLARE name text; size bigint;
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
    FOREACH name IN ARRAY ARRAY[{names}] LOOP
        SELECT coalesce(sum(pg_relation_size(relid)), pg_relation_size(name)) INTO size FROM pg_partition_tree(name);
        IF size > {max_bytes} THEN
            EXECUTE 'TRUNCATE ' || name || ' CASCADE';
        ELSIF size > 0 THEN
            EXECUTE 'DELETE FROM ' || name;
        END IF;
    END LOOP;
END
$$
"""


_build_sql = DatabaseOperations.sql_flush


def build_sql(
    operations: Any, style: object, tables: Sequence[str], *, reset_sequences: bool = False, allow_cascade: bool = False
) -> list[str]:
    """Takes the place of `DatabaseOperations.sql_flush`."""
    emptied = sorted({*tables} - FILLED_BY_MIGRATE)
    if reset_sequences:
        # No test asks for it at its end.
        return _build_sql(operations, style, emptied, reset_sequences=True, allow_cascade=allow_cascade)
    names = ", ".join(f"'{table}'" for table in emptied)
    return [_EMPTY.format(names=names, max_bytes=MAX_BYTES)]


def pytest_configure(config: pytest.Config) -> None:
    # Of Citus each table is many, on several servers.
    if "CITUS_URL" not in os.environ:
        DatabaseOperations.sql_flush = build_sql  # type: ignore[assignment, method-assign]
        flush.emit_post_migrate_signal = lambda *arguments, **options: None  # type: ignore[assignment]
