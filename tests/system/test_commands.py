"""`manage.py` finds the database of a running service, or brings it for its own duration."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.local.account import SYSTEM_FOLDER, EmbeddedDatabaseError, get_accessible_folder
from config.local.cluster import Cluster
from tests.service import Copy, Service

COUNT = "from users.models import User; print(User.objects.count())"


def test_command_finds_the_database_of_the_running_service(service: Service) -> None:
    postmaster = service.copy.postmaster()
    found = service.copy.manage("shell", "--no-imports", "-c", COUNT)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 0
    assert service.copy.postmaster() == postmaster


def test_documented_commands_dump_the_embedded_database_and_restore_it(service: Service) -> None:
    section = Path("docs/embedded-database.md").read_text()
    dump, restore = re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    restored = restore.replace("--dbname service", "--dbname copy")
    count = "psql -At -c 'SELECT count(*) FROM users_user WHERE removed_at IS NULL' "
    commands = f"{dump}\ncreatedb copy\n{restored}\n{count} copy\n{count} service\ndropdb copy"
    output, errors = service.copy.start("sh", "-ec", commands).communicate(timeout=60)
    assert errors == ""
    assert len(set(output.split())) == 1
    assert int(output.split()[0]) > 0


def test_two_commands_at_once_in_a_fresh_checkout_share_a_database_and_leave_nothing(fresh_checkout: Copy) -> None:
    command = (".venv/bin/python", "manage.py", "shell", "--no-imports", "-c", COUNT)
    pair = [fresh_checkout.start(*command) for _ in range(2)]
    ended = [(*process.communicate(timeout=120), process.returncode) for process in pair]
    assert [(output, code) for output, _, code in ended] == [("0\n", 0)] * 2
    # One migrates, and the other one may come before or after its end.
    assert {errors for _, errors, _ in ended} <= {"", "Waiting for another process that is setting up the database.\n"}
    assert fresh_checkout.processes() == {}


@pytest.mark.parametrize("arguments", [["help"], ["version"], ["serve", "--help"], ["migrate", "--help"], []])
def test_help_starts_no_database(fresh_checkout: Copy, arguments: list[str]) -> None:
    assert fresh_checkout.manage(*arguments).returncode == 0
    assert not (fresh_checkout.folder / ".data/postgresql").exists()


def test_database_that_cannot_start_is_one_line(fresh_checkout: Copy) -> None:
    data = fresh_checkout.folder / ".data/postgresql/data"
    data.mkdir(parents=True)
    data.parent.chmod(0o700)
    failed = fresh_checkout.manage("check")
    assert failed.returncode == 1
    assert failed.stderr.startswith("manage.py: The embedded database ")
    assert failed.stderr.count("\n") == 1


def test_generated_secrets_stay_the_same_and_are_private(fresh_checkout: Copy) -> None:
    secrets = fresh_checkout.folder / ".data/secrets.json"
    fresh_checkout.manage("version")
    before = json.loads(secrets.read_text())
    fresh_checkout.manage("version")
    assert json.loads(secrets.read_text()) == before
    assert secrets.stat().st_mode & 0o777 == 0o600


def test_socket_folder_of_somebody_else_is_refused() -> None:
    long = Path(tempfile.gettempdir()) / ("x" * 100)
    cluster = Cluster(long)
    try:
        long.mkdir(mode=0o700)
        cluster.sockets.symlink_to(long)
        with pytest.raises(EmbeddedDatabaseError), cluster.running():
            pass
    finally:
        cluster.sockets.unlink()
        shutil.rmtree(long)


@pytest.fixture
def system_folder() -> Iterator[Path]:
    """The folder for root's databases; its copy of the programs goes again unless it was there before."""
    before = SYSTEM_FOLDER.exists()
    yield SYSTEM_FOLDER
    if not before:
        shutil.rmtree(SYSTEM_FOLDER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another account")
def test_folder_closed_to_others_keeps_its_permissions_and_the_data_goes_elsewhere(
    system_folder: Path, fresh_checkout: Copy
) -> None:
    closed = fresh_checkout.folder.parent
    closed.chmod(0o700)
    found = fresh_checkout.manage("shell", "--no-imports", "-c", COUNT)
    assert (found.returncode, found.stdout) == (0, "0\n"), found.stderr
    place = get_accessible_folder(fresh_checkout.folder / ".data/postgresql")
    assert place.parent == system_folder
    assert found.stderr == f"The folder is closed to others, so the database is in {place}\n"
    assert closed.stat().st_mode & 0o777 == 0o700
