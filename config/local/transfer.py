"""The embedded database to a file, and back from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import BinaryIO

import psycopg

from config.local.account import (
    EmbeddedDatabaseError,
    build_subprocess_options,
    get_binaries_folder,
    get_server_account,
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
        with out:
            _run(cluster, "pg_dump", "--format=custom", "--no-unlogged-table-data", "--dbname", cluster.url, stdout=out)
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
        url = cluster.url.removesuffix(DATABASE) + RESTORED
        _run(cluster, "pg_restore", "--exit-on-error", "--no-owner", "--dbname", url, stdin=source)
        _refuse_users(connection)
        with connection.transaction():
            connection.execute(f"ALTER DATABASE {DATABASE} RENAME TO {REPLACED}")
            connection.execute(f"ALTER DATABASE {RESTORED} RENAME TO {DATABASE}")
        connection.execute(f"DROP DATABASE {REPLACED}")


def _run(
    cluster: Cluster,
    program: str,
    *arguments: str,
    stdin: int | BinaryIO = subprocess.DEVNULL,
    stdout: int | BinaryIO = subprocess.DEVNULL,
) -> None:
    """Runs a program of PostgreSQL with files as its standard input or output.

    Raises:
        EmbeddedDatabaseError: it fails.
    """
    process = subprocess.run(  # noqa: S603 - program and arguments are our own
        [get_binaries_folder() / program, *arguments],
        check=False,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        **build_subprocess_options(*get_server_account(cluster.folder)),
    )
    if process.returncode:
        reason = " ".join(process.stderr.decode(errors="replace").split())
        raise EmbeddedDatabaseError(f"The embedded database: {program} failed: {reason}")


def _refuse_users(connection: psycopg.Connection) -> None:
    used = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [DATABASE]).fetchone()
    if used != (0,):
        raise EmbeddedDatabaseError("The database is in use: stop the service first")
