"""The embedded database to a file, back from it, and to another version of PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psycopg

from config.local.account import (
    EmbeddedDatabaseError,
    build_subprocess_options,
    get_binaries_folder,
    get_server_account,
    open_lock_file,
)
from config.local.cluster import DATABASE, Cluster

RESTORED, REPLACED = f"{DATABASE}_restored", f"{DATABASE}_replaced"


def dump(cluster: Cluster, file: Path) -> None:
    """Writes the database of a running server to a new file, in the custom format of pg_dump.

    Raises:
        EmbeddedDatabaseError: the file exists, or cannot be written.
    """
    try:
        # It holds everything, secrets of credentials as digests among it.
        out = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise EmbeddedDatabaseError(f"{file}: {error.strerror}") from error
    try:
        with (
            out,
            _started(
                cluster, "pg_dump", ["--format=custom", "--no-unlogged-table-data", "--dbname", cluster.url], stdout=out
            ),
        ):
            pass
    except BaseException:
        file.unlink()
        raise


def restore(cluster: Cluster, file: Path) -> None:
    """Puts what a file holds in the place of the database of a running server: all of it, or nothing.

    Raises:
        EmbeddedDatabaseError: the file is no dump, or somebody uses the database.
    """
    try:
        source = file.open("rb")
    except OSError as error:
        raise EmbeddedDatabaseError(f"{file}: {error.strerror}") from error
    with source, psycopg.connect(cluster.url, dbname="postgres", autocommit=True) as connection:
        _refuse_users(connection)
        for name in (RESTORED, REPLACED):
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {RESTORED}")
        with _started(cluster, "pg_restore", _build_restore(cluster, RESTORED), stdin=source):
            pass
        _refuse_users(connection)
        with connection.transaction():
            connection.execute(f"ALTER DATABASE {DATABASE} RENAME TO {REPLACED}")
            connection.execute(f"ALTER DATABASE {RESTORED} RENAME TO {DATABASE}")
        connection.execute(f"DROP DATABASE {REPLACED}")


def upgrade(cluster: Cluster, binaries: Path) -> Path:
    """Brings the data of a server that is not running to the version of PostgreSQL that this release brings.

    The rows are dumped by one server and restored into another one, as between any two versions.

    Args:
        cluster: the server.
        binaries: the folder of the programs of the present version, such as /usr/lib/postgresql/17/bin.

    Returns:
        The folder in which the data of before stays.

    Raises:
        EmbeddedDatabaseError: there is nothing to do, the programs are of another version, or the service runs.
    """
    present, own = _read_version(cluster), _ask_version(get_binaries_folder())
    if present == own:
        raise EmbeddedDatabaseError(f"The data is of PostgreSQL {own} already, which is what this release brings")
    if _ask_version(binaries) != present:
        raise EmbeddedDatabaseError(f"The data is of PostgreSQL {present}; name the folder of its programs")
    _refuse_running(cluster)
    before, after = Cluster(cluster.folder, binaries=binaries), Cluster(cluster.folder / "upgrade")
    kept = cluster.folder / f"data.{present}"
    if kept.exists():
        raise EmbeddedDatabaseError(f"{kept} is there already, from an earlier upgrade: move it away")
    with (
        before.running(),
        after.running(),
        _started(
            after,
            "pg_dump",
            ["--format=custom", "--no-unlogged-table-data", "--dbname", before.url],
            stdout=subprocess.PIPE,
        ) as dumping,
        _started(after, "pg_restore", _build_restore(after, DATABASE), stdin=dumping.stdout),
    ):
        pass
    cluster.data.rename(kept)
    after.data.rename(cluster.data)
    return kept


def _build_restore(cluster: Cluster, database: str) -> Sequence[str]:
    return ["--exit-on-error", "--no-owner", "--dbname", f"{cluster.url.removesuffix(DATABASE)}{database}"]


@contextmanager
def _started(
    cluster: Cluster,
    program: str,
    arguments: Sequence[str],
    *,
    stdin: Any = None,
    stdout: IO[bytes] | int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program of PostgreSQL, and waits for its end after the block.

    Raises:
        EmbeddedDatabaseError: it fails.
    """
    process = subprocess.Popen(  # noqa: S603 - program and arguments are our own
        [get_binaries_folder() / program, *arguments],
        stdin=stdin or subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        **build_subprocess_options(*get_server_account(cluster.folder)),
    )
    with process:
        yield process
        if process.stdout:
            # What reads it has its own end, and shall learn when this one closes.
            process.stdout.close()
        told = process.stderr.read() if process.stderr else b""
        reason = " ".join(told.decode(errors="replace").split())
        if process.wait():
            raise EmbeddedDatabaseError(f"The embedded database: {program} failed: {reason}")


def _refuse_users(connection: psycopg.Connection) -> None:
    used = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [DATABASE]).fetchone()
    if used != (0,):
        raise EmbeddedDatabaseError("The database is in use: stop the service first")


def _refuse_running(cluster: Cluster) -> None:
    users = open_lock_file(cluster.folder / "users")
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EmbeddedDatabaseError("The database is in use: stop the service first") from None
    finally:
        os.close(users)


def _read_version(cluster: Cluster) -> int:
    try:
        return int((cluster.data / "PG_VERSION").read_text())
    except FileNotFoundError:
        raise EmbeddedDatabaseError(f"There is no data in {cluster.data}") from None


def _ask_version(binaries: Path) -> int:
    try:
        told = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        raise EmbeddedDatabaseError(f"There are no programs of PostgreSQL in {binaries}") from None
    found = re.search(r"(\d+)", told)
    return int(found[1]) if found else 0
