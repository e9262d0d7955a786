"""Programs of other people, as an installation runs them: configured by the files of deploy/cluster, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

import psutil

from config.local.account import build_subprocess_options, create_private_folder, get_server_account
from tests.cluster.network import NAMESPACES
from tests.service import CHECKOUT, DEADLINE
from tests.system.proxies import find_program

DEPLOY = CHECKOUT / "deploy/cluster"
PATRONI = CHECKOUT / "tests/cluster/.venv/bin/patroni"
PACKAGES = {
    "etcd": "etcd-server",
    "haproxy": "haproxy",
    "redis-server": "redis-server",
    "nginx": "nginx",
    "pgbouncer": "pgbouncer",
}
# As RestartSec= of a unit of systemd.
SECONDS_UNTIL_RESTART = 1.0


def find_programs() -> dict[str, str]:
    """The paths of the programs, by name; ends the process with one line when any is missing or cannot be run."""
    found = {name: find_program(name) for name in PACKAGES}
    found["pgbouncer"] = os.environ.get("PGBOUNCER") or found["pgbouncer"]
    if missing := [PACKAGES[name] for name, path in found.items() if not path]:
        sys.exit(f"Missing: apt-get install --yes {' '.join(missing)}")
    account = build_subprocess_options(*get_server_account(Path("/nowhere")))
    try:
        subprocess.run([PATRONI, "--version"], check=True, stdout=subprocess.DEVNULL, **account)
    except OSError:
        sys.exit(
            "Patroni cannot be run: `make cluster` installs it. As root, remove tests/cluster/.venv, and name a Python"
            " that every account can run: make cluster PYTHON=/usr/bin/python3"
        )
    return {name: str(path) for name, path in found.items()} | {"patroni": str(PATRONI)}


def is_transaction_pooler(program: str) -> bool:
    """Whether a PgBouncer keeps prepared statements in transaction mode."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return [int(part) for part in told.split()[1].split(".")] >= [1, 21]


class Room:
    """A folder in which programs run and have their files, as the account that they run as.

    Args:
        namespace: the network namespace in which they run, if not in this one.
    """

    def __init__(self, folder: Path, namespace: str | None = None) -> None:
        self.namespace = namespace
        self.account = get_server_account(folder)
        create_private_folder(folder, *self.account)
        self.folder = folder

    def write(self, name: str, template: str, values: Mapping[str, object]) -> Path:
        """Writes a file of deploy/cluster with its values filled in. Returns its path."""
        return self.write_text(name, Template((DEPLOY / template).read_text()).substitute(values))

    def write_text(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, *self.account)
        return path


class Program:
    """A program that is started again when it ends, as systemd does it, unless it was stopped."""

    def __init__(self, room: Room, name: str, command: Sequence[str | Path], variables: Mapping[str, str]) -> None:
        self.name = name
        self.log = room.folder / f"{name}.log"
        self.command, account = command, room.account
        if room.namespace:
            # Root enters it, and takes the account then.
            user, group = room.account
            enter = ["nsenter", f"--net={NAMESPACES / room.namespace}", f"--setuid={user}", f"--setgid={group}", "--"]
            self.command, account = [*enter, *command], (0, 0)
        self.options = build_subprocess_options(*account)
        self.options |= {"cwd": room.folder, "env": {**self.options["env"], **variables}}
        self.is_wanted = False
        self._lock = threading.Lock()
        self._ended: float | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> psutil.Process | None:
        """The process, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return None
        return psutil.Process(self._process.pid)

    def start(self) -> None:
        with self._lock:
            self.is_wanted = True
            self._start()

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.options
            )
        self._ended = None

    def watch(self) -> None:
        """To be called again and again: starts what has ended a while ago."""
        with self._lock:
            if not self.is_wanted or self.process:
                return
            self._ended = self._ended or time.monotonic()
            if time.monotonic() - self._ended > SECONDS_UNTIL_RESTART:
                self._start()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends it until `start()`."""
        with self._lock:
            self.is_wanted = False
        self.signal(number)
        if self._process:
            try:
                self._process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        if process := self.process:
            process.send_signal(number)


class Supervisor:
    """Starts programs again that have ended; at its end it stops them all, the last one first."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        self._ending.set()
        self._thread.join()
        if kind is AssertionError:
            for program in self.programs:
                print(program.name, program.log.read_text(errors="replace")[-1000:], sep="\n", file=sys.stderr)
        for program in reversed(self.programs):
            program.signal(signal.SIGCONT)
            program.stop()

    def run(self, program: Program) -> Program:
        program.start()
        self.programs.append(program)
        return program

    def _watch(self) -> None:
        while not self._ending.wait(0.1):
            for program in [*self.programs]:
                program.watch()
