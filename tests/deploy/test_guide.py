"""What docs/deploy.md tells an operator to do, as far as it can be done without a machine of one's own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote, urlsplit

import psycopg
import pytest

from config.local.account import get_binaries_folder
from tests.deploy.test_files import DEPLOY, ROOT

GUIDE = (ROOT / "docs/deploy.md").read_text()
UNIT = (DEPLOY / "users-service.service").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
DATABASE = "of_the_guide"


def find_block(word: str) -> str:
    (block,) = [block for block in BLOCKS if word in block]
    return block


@pytest.fixture
def sockets() -> str:
    """Where the server of the tests listens, past a pooler."""
    direct = os.environ.get("DATABASE_MIGRATION_URL", os.environ["DATABASE_URL"])
    return unquote(urlsplit(direct).netloc.rpartition("@")[2])


@pytest.fixture
def database(sockets: str) -> Iterator[None]:
    """That of the guide: its commands are run by the server's own programs, as its superuser."""
    superuser = {"PGHOST": sockets, "PGUSER": "postgres", "PATH": f"{get_binaries_folder()}:{os.defpath}"}
    commands = find_block("createuser").replace("runuser -u postgres -- ", "")
    # The tests have a database of that name already.
    commands = commands.replace("users-service service", f"users-service {DATABASE}")
    subprocess.run(["/bin/sh", "-ec", commands], env=superuser, check=True)
    yield
    subprocess.run(["/bin/sh", "-ec", f"dropdb {DATABASE} && dropuser users-service"], env=superuser, check=True)


@pytest.fixture
def settings_of_guide(sockets: str) -> Iterator[Mapping[str, str]]:
    """What its commands write, as the unit gives it to the service."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "users-service"
        commands = find_block("secret_key").replace("/etc/users-service", str(folder))
        commands = commands.replace("%2Fvar%2Frun%2Fpostgresql/service", f"{quote(sockets, safe='')}/{DATABASE}")
        subprocess.run(["/bin/sh", "-ec", commands], check=True)
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        written = dict(line.split("=", 1) for line in (folder / "environment").read_text().splitlines())
        files = dict(re.findall(r"(\w+_FILE)=%d/(\w+)", UNIT))
        assert set(files.values()) == {path.name for path in folder.iterdir()} - {"environment"}
        yield written | {variable: str(folder / file) for variable, file in files.items()} | {"LOCAL": "false"}


def manage(settings: Mapping[str, str], *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
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


def test_unit_uses_what_the_guide_has_made() -> None:
    account = re.search(r"^useradd .* (\S+)$", GUIDE, re.MULTILINE)
    clone = re.search(r"^git clone \S+ (\S+)$", GUIDE, re.MULTILINE)
    folder = re.search(r"^install --directory .* (\S+)$", GUIDE, re.MULTILINE)
    assert account
    assert clone
    assert folder
    unit = dict(line.split("=", 1) for line in UNIT.splitlines() if re.match(r"[A-Z]\w+=", line))
    assert unit["User"] == unit["Group"] == account[1]
    assert unit["WorkingDirectory"] == clone[1]
    assert unit["EnvironmentFile"] == f"{folder[1]}/environment"
    python = f"{clone[1]}/.venv/bin/python"
    assert unit["ExecStart"] == f"{python} manage.py serve"
    assert f"python3 -m venv {clone[1]}/.venv" in GUIDE
    assert f"{python} -m pip install --require-hashes --no-deps -r {clone[1]}/requirements.txt" in GUIDE
    assert f"cp {clone[1]}/deploy/{DEPLOY.joinpath('users-service.service').name} /etc/systemd/system/" in GUIDE
