import os

import psycopg
import pytest


@pytest.fixture
def empty_database(monkeypatch):
    name = f"example_{os.getpid()}"
    # Past a pooler, where the tests have one in between.
    direct = os.environ.get("DATABASE_MIGRATION_URL", os.environ["DATABASE_URL"])
    monkeypatch.setenv("DATABASE_MIGRATION_URL", f"{direct.rpartition('/')[0]}/{name}")
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
