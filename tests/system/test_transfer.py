"""The embedded database to a file, and back from it."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from config.local import transfer
from config.local.account import EmbeddedDatabaseError
from config.local.cluster import NON_DURABLE_SETTINGS, Cluster


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
