"""The commands of docs/deploy.md that make the role, the database and the settings: they suffice, and give no more."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import psycopg
import pytest

from config.local.account import get_binaries_folder
from tests.deploy.test_guide import GUIDE, SETTINGS
from tests.service import CHECKOUT

DATABASE = "of_the_guide"
(ROLE,) = re.findall(r"^runuser -u postgres -- (psql .*)$", GUIDE, re.MULTILINE)


@pytest.fixture
def sockets() -> str:
    """Where the server of the tests listens, past a pooler."""
    direct = os.environ.get("DATABASE_MIGRATION_URL", os.environ["DATABASE_URL"])
    return unquote(urlsplit(direct).netloc.rpartition("@")[2])


@pytest.fixture
def database(sockets: str) -> Iterator[None]:
    """That of the guide: its commands are run by the server's own programs, as its superuser."""
    superuser = {"PGHOST": sockets, "PGUSER": "postgres", "PATH": f"{get_binaries_folder()}:{os.defpath}"}
    # The tests have a database of that name already.
    command = ROLE.replace("DATABASE service", f"DATABASE {DATABASE}")
    subprocess.run(["bash", "-ec", command], env=superuser, check=True)
    yield
    subprocess.run(["bash", "-ec", f"dropdb {DATABASE} && dropuser users-service"], env=superuser, check=True)


@pytest.fixture
def settings_of_guide(sockets: str, tmp_path: Path) -> Mapping[str, str]:
    """What its command writes, as the unit gives it to the service."""
    file = tmp_path / "environment"
    command = SETTINGS.replace("/etc/users-service/environment", str(file))
    command = command.replace("%2Fvar%2Frun%2Fpostgresql/service", f"{quote(sockets, safe='')}/{DATABASE}")
    subprocess.run(["bash", "-ec", f"DOMAIN=api.example.com\nEMAIL_URL=smtp://localhost\n{command}"], check=True)
    assert file.stat().st_mode & 0o777 == 0o600
    return dict(line.split("=", 1) for line in file.read_text().splitlines()) | {"LOCAL": "false"}


def manage(settings: Mapping[str, str], *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=CHECKOUT,
        env={**settings, "PATH": os.defpath},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_role_of_the_guide_may_do_what_the_service_needs_and_no_more(
    database: None, settings_of_guide: Mapping[str, str], sockets: str
) -> None:
    manage(settings_of_guide, "check", "--deploy", "--fail-level", "WARNING")
    manage(settings_of_guide, "migrate", "--verbosity", "0")
    arguments = ("create_user", "admin@example.com", "--name", "Ann", "--role", "admin")
    assert int(manage(settings_of_guide, *arguments, given="four plain words here\n")) > 0
    with psycopg.connect(host=sockets, user="users-service", dbname=DATABASE) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert rights == (False, False, False, False)
