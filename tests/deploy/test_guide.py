"""What docs/deploy.md tells an operator to do, as far as `make test` can: `make test-deploy` runs all of it."""

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
from tests.deploy.test_files import ROOT, UNITS

GUIDE = (ROOT / "docs/deploy.md").read_text()
DATABASE = "of_the_guide"
(ROLE,) = re.findall(r"^runuser -u postgres -- (psql .*)$", GUIDE, re.MULTILINE)
(SETTINGS,) = re.findall(
    r"^(install [^\n]*/etc/users-service/environment <<END\n.*?^END\n)", GUIDE, re.MULTILINE | re.DOTALL
)


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


def test_guide_takes_ten_commands_of_one_step_each() -> None:
    way = GUIDE.partition("\n## ")[0].partition("REPOSITORY=")[2].partition("```\n")[2]
    blocks = "".join(re.findall(r"^```\n(.*?)^```", way, re.MULTILINE | re.DOTALL))
    lines = re.sub(r" <<END\n.*?^END$", "", blocks, flags=re.MULTILINE | re.DOTALL).splitlines()
    assert len(lines) == 10
    assert not re.search(r"&&|; |\|", "".join(lines))


@pytest.mark.parametrize("unit", ["users-service.service", "users-service-purge.service"])
def test_unit_uses_what_the_guide_has_made(unit: str) -> None:
    account = re.search(r"useradd .* (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    clone = re.search(r"^git clone \S+ (\S+)$", GUIDE, re.MULTILINE)
    assert account
    assert clone
    found = dict(line.split("=", 1) for line in (UNITS / unit).read_text().splitlines() if re.match(r"[A-Z]\w+=", line))
    assert found["User"] == found["Group"] == account[1]
    assert found["WorkingDirectory"] == clone[1]
    assert f" {found['EnvironmentFile']} <<END" in SETTINGS
    assert found["ExecStart"].startswith(f"{clone[1]}/.venv/bin/python manage.py ")
