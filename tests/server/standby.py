"""A primary and its streaming standby."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from config.local.account import create_private_folder, get_accessible_folder, get_server_account
from config.local.cluster import DATABASE, NON_DURABLE_SETTINGS, Cluster


class Pair(NamedTuple):
    primary: Cluster
    standby: Cluster

    @property
    def url(self) -> str:
        hosts = ",".join(str(server.sockets).replace("/", "%2F") for server in self)
        return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"


@contextmanager
def replicated(folder: Path, **settings: str) -> Iterator[Pair]:
    """A primary and its streaming standby, neither of which is started again; with settings of PostgreSQL."""
    settings = {**NON_DURABLE_SETTINGS, **settings}
    pair = Pair(*(Cluster(get_accessible_folder(folder / name), settings) for name in ("1", "2")))
    with pair.primary.running():
        create_private_folder(pair.standby.folder, *get_server_account(pair.standby.folder))
        source = ["--host", str(pair.primary.sockets), "--username", "postgres", "--checkpoint=fast", "--no-sync"]
        pair.standby._run("pg_basebackup", ["--pgdata", str(pair.standby.data), "--write-recovery-conf", *source])
        with pair.standby.running():
            yield pair


def fetch(server: Cluster, sql: str) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        return connection.execute(sql).fetchone()[0]


def kill_machine(server: Cluster) -> None:
    """A server process outlives the postmaster for a moment, in which it may take another payment."""
    postmaster = psutil.Process(server._postmaster())
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        process.suspend()
    for process in processes:
        process.kill()
