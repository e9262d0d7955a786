"""A primary and its streaming standby."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from config.local.account import create_private_folder, get_accessible_folder, get_server_account
from config.local.cluster import DATABASE, NON_DURABLE_SETTINGS, Cluster
from tests.service import open_folder, wait_for


class Pair(NamedTuple):
    primary: Cluster
    standby: Cluster

    @property
    def url(self) -> str:
        hosts = ",".join(str(server.sockets).replace("/", "%2F") for server in self)
        return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"


@contextmanager
def replicated(**settings: str) -> Iterator[Pair]:
    """A primary and its streaming standby, neither of which is started again; with settings of PostgreSQL."""
    with open_folder() as folder, primary_with_standbys(folder, 1, **settings) as (primary, standby):
        yield Pair(primary, standby)


@contextmanager
def primary_with_standbys(folder: Path, standbys: int, **settings: str) -> Iterator[list[Cluster]]:
    """A primary and so many streaming standbys, none of which is started again; with settings of PostgreSQL."""
    settings = {**NON_DURABLE_SETTINGS, **settings}
    servers = [Cluster(get_accessible_folder(folder / str(number)), settings) for number in range(1, standbys + 2)]
    primary = servers[0]
    source = ["--host", str(primary.sockets), "--username", "postgres", "--checkpoint=fast", "--no-sync"]
    with ExitStack() as running:
        running.enter_context(primary.running())
        for standby in servers[1:]:
            create_private_folder(standby.folder, *get_server_account(standby.folder))
            standby._run("pg_basebackup", ["--pgdata", str(standby.data), "--write-recovery-conf", *source])
            running.enter_context(standby.running())
        yield servers


@contextmanager
def paused(standby: Cluster) -> Iterator[None]:
    """The standby gets what the primary writes, and does not show it."""
    with psycopg.connect(standby.url, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        wait_for(lambda: fetch(standby, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")


def fetch(server: Cluster, sql: str) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        return connection.execute(sql).fetchone()[0]


def suspend(server: Cluster) -> Sequence[psutil.Process]:
    """Stops all processes of a server where they are. Returns them, the postmaster last."""
    postmaster = psutil.Process(server._postmaster())
    # From now on it starts no other process, and one that ends stays until the postmaster takes notice.
    postmaster.suspend()
    children = postmaster.children(recursive=True)
    for process in children:
        process.suspend()
    return [*children, postmaster]


def kill_machine(server: Cluster) -> None:
    """A server process outlives the postmaster for a moment, in which it may take another payment."""
    for process in suspend(server):
        process.kill()
