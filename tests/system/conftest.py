import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.service import CHECKOUT


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


def run_tests(plugin: str, folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the text of a test module in a pytest of its own, beside a plugin of this suite."""
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    folder.joinpath("test_it.py").write_text(tests)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", *options, folder],
        cwd=CHECKOUT,
        env=environment | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
