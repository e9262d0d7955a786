"""An earlier release: the files of a commit, on the packages of this one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.management.test_migrations import BEFORE
from tests.service import CHECKOUT, Copy

_MIGRATIONS = "*/migrations/0*.py"


class Release(Copy):
    """The files of a commit, as `Copy` has those of the checkout."""

    def __init__(self, folder: Path, commit: str) -> None:
        self.folder = folder
        folder.mkdir()
        archive = subprocess.run(["git", "archive", commit], cwd=CHECKOUT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
        environment = folder / ".venv"
        environment.mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            (environment / name).symlink_to(Path(sys.prefix) / name)
        shutil.copy(folder / "requirements.txt", environment)


@contextmanager
def released(commit: str) -> Iterator[Release]:
    """The release of a commit, outside of folders that are closed to the account of root's database."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Release(Path(name) / "release", commit)


def find_release_before() -> str:
    """The commit before the newest migration."""
    return _find_commit_before([_MIGRATIONS], "-1")


def find_release_before_the_rule() -> str:
    """The commit before the first migration that may not lock (docs/upgrade.md)."""
    new = [
        str(path.relative_to(CHECKOUT))
        for app, last in BEFORE.items()
        for path in (CHECKOUT / app / "migrations").glob("0*.py")
        if path.stem > last
    ]
    return _find_commit_before(new, "--reverse")


def _find_commit_before(paths: Sequence[str], which: str) -> str:
    command = ["git", "log", which, "--diff-filter=A", "--format=%H", "--", *paths]
    found = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split()
    return f"{found[0]}^"


def describe(commit: str) -> str:
    command = ["git", "log", "-1", "--format=%h (%s)", commit]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
