"""PgBouncer in transaction mode in front of a database of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from config.local.account import build_subprocess_options, create_private_folder, get_server_account
from config.local.cluster import DATABASE, Cluster

PROGRAM = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer")
CONFIGURATION = """
[databases]
* = host={sockets} user=postgres

[pgbouncer]
unix_socket_dir = {folder}
unix_socket_mode = 0700
listen_port = 5432
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = {size}
{more}
"""


@contextmanager
def pooled(
    cluster: Cluster, program: str, *, size: int = 40, more: str = "", database: str = DATABASE
) -> Iterator[str]:
    """Runs PgBouncer for the block.

    Args:
        cluster: that it connects to.
        program: the path of it.
        size: how many connections to each database it has at most.
        more: further lines of its configuration.
        database: the name of the one that is connected to.

    Yields:
        the URL of the database, through it.
    """
    folder = cluster.folder / "pgbouncer"
    account = get_server_account(cluster.folder)
    create_private_folder(folder, *account)
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(CONFIGURATION.format(sockets=cluster.sockets, folder=folder, size=size, more=more))
    url = f"postgresql://postgres@{quote(str(folder), safe='')}/{database}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, configuration], stdout=log, stderr=log, **build_subprocess_options(*account)
        )
    try:
        _wait_for(url, process, folder / "log")
        yield url
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text()) from None
            time.sleep(0.02)
        else:
            return
