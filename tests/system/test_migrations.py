"""Migrations while several machines start at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.core.management import call_command
from django.db import NotSupportedError, connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from pgtrigger.migrations import AddTrigger, RemoveTrigger

from config.management.migrations import setup_lock
from config.postgresql.backend.base import DatabaseFeatures
from tests.releases.second_release import MIGRATIONS


def test_index_is_built_while_others_wait_for_the_lock(transactional_db: None) -> None:
    """CREATE INDEX CONCURRENTLY waits for every statement that began before, of whatever session."""
    entered = []

    def wait() -> None:
        with setup_lock():
            entered.append(time.monotonic())

    waiting = threading.Thread(target=wait)
    with setup_lock(), connection.cursor() as cursor:
        waiting.start()
        time.sleep(0.5)
        cursor.execute("CREATE INDEX CONCURRENTLY built_meanwhile ON accounts_apikey (prefix)")
        cursor.execute("DROP INDEX CONCURRENTLY built_meanwhile")
        assert not entered
    waiting.join(timeout=10)
    assert entered


HOLDING = """
import django
django.setup()
from config.management.migrations import setup_lock
with setup_lock():
    print("held", flush=True)
    input()
"""


def build_environment() -> dict[str, str]:
    """That of a process for which another host than that of DATABASE_URL has the database of the tests."""
    database = connection.settings_dict | settings.DIRECT_DATABASE
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://nobody@127.0.0.1:1/{database['NAME']}",
        "DATABASE_MIGRATION_URL": f"postgresql://postgres@{quote(database['HOST'], safe='')}/{database['NAME']}",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def test_migrations_have_a_database_url_of_their_own(transactional_db: None) -> None:
    command = [sys.executable, "manage.py", "migrate"]
    ended = subprocess.run(command, env=build_environment(), capture_output=True, text=True, check=False, timeout=60)
    assert "No migrations to apply" in ended.stdout
    assert (ended.returncode, ended.stderr) == (0, "")


@contextmanager
def held_elsewhere() -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        env=build_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_process_that_is_killed_leaves_no_lock(transactional_db: None, capsys: pytest.CaptureFixture[str]) -> None:
    entered = threading.Event()

    def migrate() -> None:
        call_command("migrate", verbosity=0)
        entered.set()

    with held_elsewhere() as process:
        waiting = threading.Thread(target=migrate)
        waiting.start()
        assert not entered.wait(0.5)
        process.kill()
        assert entered.wait(5)
        waiting.join()
    assert capsys.readouterr().err.count("Waiting for another process") == 1


# --- What a migration may do while the release before it serves (docs/upgrade.md)


def find_faults(migration: Migration) -> list[str]:
    """What of a migration the release before it would not survive, or would wait for."""
    return [
        f"{migration.app_label}.{migration.name}: {operation.describe()}"
        for operation in migration.operations
        if not may_run(operation, is_atomic=migration.atomic)
    ]


def may_run(operation: Operation, *, is_atomic: bool) -> bool:
    match operation:
        case operations.AddField(field=field):
            return field.null or field.has_db_default() or field.many_to_many
        case operations.CreateModel() | operations.AlterModelOptions() | operations.AlterModelManagers():
            return True
        case AddIndexConcurrently() | RemoveIndexConcurrently() | ValidateConstraint():
            return not is_atomic
        case AddConstraintNotValid() | AddTrigger() | RemoveTrigger():
            return True
        case operations.RunPython() | operations.RunSQL():
            # In batches, each of which is committed.
            return not is_atomic
    return False


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.stem)
def test_migrations_of_a_second_release_leave_the_first_one_working(path: Path) -> None:
    migration = import_module(f"tests.releases.second.{path.stem}").Migration(path.stem, "orders")
    assert find_faults(migration) == []


def test_later_migrations_leave_the_release_before_them_working() -> None:
    """Initial ones are edited in place until the first release is tagged; later ones keep the rule."""
    found = MigrationLoader(None).disk_migrations
    own = {app for app, _ in found if "site-packages" not in str(apps.get_app_config(app).module.__file__)}
    later = [found[app, name] for app, name in found if app in own and not name.endswith("_initial")]
    assert [fault for migration in later for fault in find_faults(migration)] == []


def test_operations_that_lock_or_break_are_refused() -> None:
    for operation, is_atomic, passes in [
        (operations.AddField("user", "x", models.TextField(null=True)), True, True),
        (operations.AddField("user", "x", models.TextField(db_default="")), True, True),
        (operations.AddField("user", "x", models.TextField(default="")), True, False),
        (operations.RemoveField("user", "x"), True, False),
        (operations.RenameField("user", "x", "y"), True, False),
        (operations.AlterField("user", "x", models.TextField()), True, False),
        (operations.AddIndex("user", models.Index(fields=["x"], name="x")), True, False),
        (AddIndexConcurrently("user", models.Index(fields=["x"], name="x")), False, True),
        (operations.AddConstraint("user", models.UniqueConstraint(fields=["x"], name="x")), True, False),
        (operations.RunPython(operations.RunPython.noop), True, False),
        (operations.RunPython(operations.RunPython.noop), False, True),
        (operations.DeleteModel("user"), True, False),
    ]:
        migration = type("Migration", (Migration,), {"operations": [operation], "atomic": is_atomic})("new", "users")
        assert (find_faults(migration) == []) is passes


def test_postgresql_that_is_too_old_is_refused_in_one_line(transactional_db, monkeypatch):
    version = connection.pg_version // 10_000
    with monkeypatch.context() as patched:
        patched.setattr(DatabaseFeatures, "minimum_database_version", (version + 1,))
        patched.setattr("django.db.backends.base.base.RAN_DB_VERSION_CHECK", set())
        with pytest.raises(NotSupportedError, match=f"PostgreSQL {version + 1} or later is required"):
            call_command("migrate", verbosity=0)
