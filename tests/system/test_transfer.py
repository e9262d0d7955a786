"""The embedded database to a file, back from it, and to another version of PostgreSQL."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from config.local import transfer
from config.local.account import EmbeddedDatabaseError, build_subprocess_options, get_server_account
from config.local.cluster import NON_DURABLE_SETTINGS, Cluster

OLD = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Outside of pytest's folder, which is closed to the account of root's server."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


def execute(cluster: Cluster, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]  # of the tests
        return cursor.fetchall() if cursor.description else []


def test_dump_brings_back_what_was_there_and_nothing_later(folder: Path) -> None:
    cluster, file = Cluster(folder / "server", NON_DURABLE_SETTINGS), folder / "service.dump"
    with cluster.running():
        execute(cluster, "CREATE TABLE kept AS SELECT 'Grüße' AS word")
        transfer.dump(cluster, file)
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(EmbeddedDatabaseError, match="File exists"):
            transfer.dump(cluster, file)
        execute(cluster, "UPDATE kept SET word = 'later'; CREATE TABLE later ()")
        with psycopg.connect(cluster.url), pytest.raises(EmbeddedDatabaseError, match="stop the service first"):
            transfer.restore(cluster, file)
        transfer.restore(cluster, file)
        assert execute(cluster, "SELECT word, to_regclass('later') FROM kept") == [("Grüße", None)]
        # What is no dump changes nothing.
        (folder / "wrong").write_text("no dump")
        with pytest.raises(EmbeddedDatabaseError, match="pg_restore failed"):
            transfer.restore(cluster, folder / "wrong")
        assert execute(cluster, "SELECT word FROM kept") == [("Grüße",)]


def test_data_of_an_older_postgresql_is_upgraded(folder: Path) -> None:
    if not OLD.exists():
        pytest.skip("There is no PostgreSQL 15 on this machine.")
    cluster = Cluster(folder / "server", NON_DURABLE_SETTINGS)
    account = get_server_account(cluster.folder)
    cluster.folder.mkdir(mode=0o700)
    os.chown(cluster.folder, *account)
    subprocess.run(
        [OLD / "initdb", "--auth=trust", "--username=postgres", "--no-sync", "--pgdata", cluster.data],
        check=True,
        stdout=subprocess.DEVNULL,
        **build_subprocess_options(*account),
    )
    before = Cluster(cluster.folder, NON_DURABLE_SETTINGS, binaries=OLD)
    with before.running():
        execute(before, "CREATE TABLE kept AS SELECT current_setting('server_version_num')::int / 10000 AS version")
        with pytest.raises(EmbeddedDatabaseError, match="stop the service first"):
            transfer.upgrade(cluster, OLD)
    with (
        pytest.raises(EmbeddedDatabaseError, match=r"of PostgreSQL 15, .* manage.py upgrade_database"),
        cluster.running(),
    ):
        pass
    with pytest.raises(EmbeddedDatabaseError, match="no programs of PostgreSQL"):
        transfer.upgrade(cluster, folder)
    kept = transfer.upgrade(cluster, OLD)
    assert (kept / "PG_VERSION").read_text() == "15\n"
    with cluster.running():
        assert execute(cluster, "SELECT version, current_setting('server_version_num')::int / 10000 FROM kept") == [
            (15, 18)
        ]
    with pytest.raises(EmbeddedDatabaseError, match="already"):
        transfer.upgrade(cluster, OLD)
    shutil.rmtree(cluster.folder)
