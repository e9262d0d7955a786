"""The service with its own PostgreSQL, as processes that can be killed."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

import tests.service
from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.proxy import Proxy
from tests.service import DEADLINE, Copy, open_folder, temporary_copy, wait_for

WORKERS, DELIVERERS = 3, 2


# To fill a database takes half a minute, and several times as long on a busy machine.
SECONDS_OF_A_COMMAND = 1800.0


def manage(copy: Copy, database: str, *arguments: str) -> str:
    """Runs a command on a database. Returns what it printed."""
    done = copy.manage(*arguments, seconds=SECONDS_OF_A_COMMAND, DATABASE_URL=database, LOCAL="true")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Service(tests.service.Service):
    """`manage.py serve`, which reaches its database at the given address; `variables` are further settings."""

    def __init__(self, copy: Copy, database: str, log: Path, count: int = WORKERS, **variables: str) -> None:
        # Two hundred clients of one user retry at the same time.
        settings = {"LOCAL": "true", "DATABASE_URL": database, "WORKERS": str(count), "MAX_IN_FLIGHT": "0"}
        self.configure(copy, **{**settings, **variables})
        self.log, self.count = log, count

    def start(self) -> dict[str, str]:
        """Waits until it serves. Returns what it printed, by name.

        It ends with one line when it loses the database on the way; whoever runs a service starts it again then.
        """
        for _ in range(5):
            lines = self.launch()
            if lines[-1:] and lines[-1].startswith("Address: "):
                return dict(line.split(": ", 1) for line in lines)
            self.process.communicate()
        raise AssertionError(self.log.read_text()[-2000:])

    def kill_worker(self, spared: Collection[int] = ()) -> None:
        os.kill(random.choice([pid for pid in self.workers() if pid not in spared]), signal.SIGKILL)

    def kill_slow_lane(self, spared: Collection[int] = ()) -> None:
        """Kills the process beside a worker that is not spared."""
        workers = [psutil.Process(pid) for pid in self.workers() if pid not in spared]
        lane = random.choice([process for worker in workers for process in worker.children()])
        lane.kill()
        # As long as its worker has not ended, a process that was killed is still a child of it, and passes for whole.
        lane.wait(DEADLINE)

    def heal(self) -> None:
        """Waits until the service has started the killed workers again, each with its slow lane."""
        wait_for(self._is_whole)

    def _is_whole(self) -> bool:
        try:
            lanes = [psutil.Process(pid).children() for pid in self.workers()]
        except psutil.NoSuchProcess:
            return False
        return len(lanes) == self.count and all(lanes)

    def kill(self) -> None:
        for pid in [self.process.pid, *self.workers()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Looks for no secrets in the log, which may be longer than the memory."""
        self.process.send_signal(number)
        self.process.communicate(timeout=DEADLINE)
        return self.process.returncode


class Database:
    """The embedded PostgreSQL, which is started again by the service's own supervisor."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.url = cluster.url

    def kill(self, part: str) -> float:
        """Kills the postmaster or a process of a connection. Returns when the server accepts connections again."""
        with psycopg.connect(self.url, autocommit=True) as watching:
            victim = int((self.cluster.data / "postmaster.pid").read_text().partition("\n")[0])
            if part == "backend":
                others = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                victim = random.choice(watching.execute(others).fetchall())[0]
            os.kill(victim, signal.SIGKILL)
            # A connection of which nothing was asked has something to read when the server goes.
            select.select([watching.fileno()], [], [], DEADLINE)
        wait_for(self._accepts)
        return time.monotonic()

    def _accepts(self) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url).close()
            return True
        return False


class Deliverers:
    """Processes of `manage.py deliver` beside the one of the service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._own: list[subprocess.Popen[str]] = []

    def heal(self) -> None:
        for each in [each for each in self._own if each.poll() is not None]:
            each.communicate()
            self._own.remove(each)
        command = [".venv/bin/python", "manage.py", "deliver"]
        while len(self._own) < DELIVERERS:
            with self.service.log.open("a") as log:
                self._own.append(self.service.copy.start(*command, errors=log, **self.service.variables))

    def kill(self) -> None:
        found = [pid for pid, command in self.service.copy.processes().items() if "manage.py deliver" in command]
        with suppress(psutil.NoSuchProcess):
            psutil.Process(random.choice(found)).kill()
        self.heal()

    def stop(self) -> None:
        for each in self._own:
            each.terminate()
            each.communicate(timeout=DEADLINE)


@contextmanager
def deployed(
    copy: Copy, database: str, log: Path, count: int = WORKERS, **variables: str
) -> Iterator[tuple[Service, dict[str, str]]]:
    """A service, and what it has printed, by name."""
    service = Service(copy, database, log, count, **variables)
    started = service.start()
    try:
        yield service, started
    finally:
        if service.process.poll() is None:
            service.stop()


@contextmanager
def lead_by_socket(folder: Path) -> Iterator[str]:
    """The address of the database behind a socket in a folder."""
    yield f"postgresql://postgres@{quote(str(folder), safe='')}/service"


@contextmanager
def everything(
    log: Path, lead: Callable[[Path], AbstractContextManager[str]] = lead_by_socket, **variables: str
) -> Iterator[tuple[Service, Database, Proxy, dict[str, str]]]:
    """The service with further settings, its database, the proxy between them, and what the service has printed.

    Args:
        log: gets the log of the service.
        lead: from the service to the proxy, whose socket is in the folder that it gets.
        variables: the settings.
    """
    with open_folder() as folder, temporary_copy("service") as copy:
        cluster = Cluster(get_accessible_folder(folder / "server"), {"shared_buffers": "64MB"})
        with (
            cluster.supervised(),
            Proxy(folder, cluster.sockets) as proxy,
            lead(folder) as address,
            deployed(copy, address, log, **variables) as (service, started),
        ):
            yield service, Database(cluster), proxy, started
