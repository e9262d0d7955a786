import os

import psycopg
import pytest


@pytest.fixture
def empty_database():
    name = f"example_{os.getpid()}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
