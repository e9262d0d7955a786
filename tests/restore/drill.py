"""A database that is lost under load, and restored to a moment by the commands of docs/backup.md."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from config.local.account import (
    build_subprocess_options,
    get_binaries_folder,
    get_server_account,
)
from config.local.cluster import Cluster
from tests.faults.clients import Client
from tests.faults.service import Service, manage
from tests.service import temporary_copy, wait_for
from tests.trials import at_work

CLIENTS = 4
SECONDS_BETWEEN_REQUESTS = 0.01
SECONDS_OF_WRITES = 5
# What processes keep in memory is written every ten seconds.
SECONDS_UNTIL_QUIET = 12
# A million users and their orders are read from the archive in less.
PATIENCE = 1800
# What an unlogged table holds is lost with the server, as after any crash: the counters of the present minute.
_TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND relnamespace = 'public'::regnamespace ORDER BY 1
"""
_ARCHIVED = "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver"
_HASH = "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM {table} AS t"

Hashes = dict[str, tuple[int, int]]


class Drill:
    """A database whose log is archived, its backup, and what is restored of them.

    Args:
        folder: where all of it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive, self.backup = folder / "archive", folder / "backup"
        self.cluster = Cluster(
            folder / "server",
            {
                "archive_mode": "on",
                "archive_command": f'test ! -f "{self.archive}/%f" && cp "%p" "{self.archive}/%f"',
                "archive_timeout": "10s",
            },
        )
        self._account = get_server_account(self.cluster.folder)
        for made in (self.archive, self.backup):
            made.mkdir(mode=0o700)
            os.chown(made, *self._account)

    def back_up(self) -> None:
        address = ("--host", self.cluster.sockets, "--username", "postgres")
        self._run(get_binaries_folder() / "pg_basebackup", *address, "--pgdata", self.backup, "--checkpoint", "fast")

    def lose(self) -> None:
        """Kills the server and removes its folder of data."""
        os.kill(int((self.cluster.data / "postmaster.pid").read_text().partition("\n")[0]), signal.SIGKILL)
        wait_for(lambda: self.cluster._postmaster() is None)
        shutil.rmtree(self.cluster.data)

    @contextmanager
    def restored(self, moment: str) -> Iterator[Cluster]:
        """The database as it was at a moment."""
        self._run("cp", "--archive", self.backup, self.cluster.data)
        self._run("touch", self.cluster.data / "recovery.signal")
        recovery = {
            "restore_command": f'cp "{self.archive}/%f" "%p"',
            "recovery_target_time": moment,
            "recovery_target_action": "promote",
        }
        found = Cluster(self.cluster.folder, recovery)
        with found.running():
            with psycopg.connect(found.url, autocommit=True) as connection:
                wait_for(lambda: not fetch(connection, "SELECT pg_is_in_recovery()"), PATIENCE)
            yield found

    def copy(self, restored: Cluster) -> str:
        """Dumps the database and restores it into another one of the server. Returns the address of that."""
        file, url = self.archive / "service.dump", restored.url.removesuffix("service") + "copy"
        binaries = get_binaries_folder()
        self._run(binaries / "pg_dump", "--format", "custom", "--file", file, "--dbname", restored.url)
        with psycopg.connect(restored.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE copy")
        self._run(binaries / "pg_restore", "--exit-on-error", "--no-owner", "--dbname", url, file)
        return url

    def _run(self, *command: str | Path) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **build_subprocess_options(*self._account))


def fetch(connection: psycopg.Connection, sql: str) -> object:
    row = connection.execute(sql).fetchone()  # type: ignore[arg-type]  # of constants
    assert row
    return row[0]


def compute_hashes(url: str) -> Hashes:
    """How many rows each table has, and a hash of them."""
    found: Hashes = {}
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for (table,) in connection.execute(_TABLES).fetchall():
            found[table] = connection.execute(_HASH.format(table=table)).fetchone() or (0, 0)  # type: ignore[arg-type, assignment]  # of constants
    return found


@contextmanager
def writing(service: Service, key: str, ledger: Path, first: int) -> Iterator[None]:
    with at_work(
        Client(first + number, service.port, key, ledger, [], pause=SECONDS_BETWEEN_REQUESTS)
        for number in range(CLIENTS)
    ):
        yield


def run(users: int, folder: Path) -> bool:
    """Runs the drill, prints what it took, and returns whether all is as it was."""
    drill, ledger = Drill(folder), folder / "ledger"
    ledger.mkdir()
    with temporary_copy("service") as copy:
        with drill.cluster.running():
            service = Service(copy, drill.cluster.url, folder / "log", 2)
            key = service.start()["API key"]
            manage(
                copy,
                drill.cluster.url,
                "seed",
                "--users",
                str(users),
                "--orders-per-user",
                "1",
                "--posts-per-user",
                "1",
            )
            say(f"{users:,} users with an order and a post each are there")
            with writing(service, key, ledger, 1):
                time.sleep(SECONDS_OF_WRITES)
                drill.back_up()
                say("The backup is made, under load")
                time.sleep(SECONDS_OF_WRITES)
            time.sleep(SECONDS_UNTIL_QUIET)
            expected = compute_hashes(drill.cluster.url)
            with psycopg.connect(drill.cluster.url, autocommit=True) as connection:
                moment = str(fetch(connection, "SELECT date_trunc('second', now()) + interval '1 second'"))
                time.sleep(2)
                assert compute_hashes(drill.cluster.url) == expected, "something was written meanwhile"
                with writing(service, key, ledger, 1 + CLIENTS):
                    time.sleep(SECONDS_OF_WRITES)
                connection.execute("DELETE FROM payments_payment")
                last = fetch(connection, "SELECT pg_walfile_name(pg_current_wal_lsn())")
                connection.execute("SELECT pg_switch_wal()")
                wait_for(lambda: fetch(connection, _ARCHIVED) >= last, PATIENCE)  # type: ignore[operator]  # texts
            assert compute_hashes(drill.cluster.url) != expected
            service.stop()
            say(f"More is written, and all payments are deleted, after {moment}")
            drill.lose()
        say("The folder of the data is lost")
        with drill.restored(moment) as restored:
            say("The database is restored")
            found = compute_hashes(restored.url)
            copied = compute_hashes(drill.copy(restored))
            say("It is dumped, and restored into another one")
            service.start()
            counts = manage(copy, restored.url, "recount", "--check")
            service.stop()
    different = sorted(
        table
        for table in expected.keys() | found.keys()
        if not expected.get(table) == found.get(table) == copied.get(table)
    )
    rows = sum(count for count, _ in found.values())
    say(f"{len(found)} tables with {rows:,} rows; different: {', '.join(different) or 'none'}")
    say(f"recount --check: {counts}")
    return not different


_began = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _began:6.1f} s  {text}", flush=True)
