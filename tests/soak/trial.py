"""A soak: clients with a ledger, visitors, faults and a bad network, and the memory of the workers all along."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from benchmarks.measuring import tree
from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.clients import Client
from tests.faults.logs import read_log
from tests.faults.proxy import SOCKET, Proxy
from tests.faults.report import Report, compare, last_ids
from tests.faults.service import Database, Service
from tests.faults.trial import CUT_COMMITS, let_work, strike
from tests.load.probe import Health, merge, probe
from tests.load.world import USERS, manage, sign_in
from tests.service import serves, temporary_copy
from tests.soak.network import Network
from tests.soak.traffic import Visitor

CLIENTS = 4
VISITORS = 3
# About a hundred writes a second altogether, so that an hour's ledger can be read.
SECONDS_BETWEEN_WRITES = 0.03
SECONDS_BETWEEN_FAULTS = 8.0
SECONDS_BETWEEN_EVENTS = 5.0
FAULTS = {"worker": 40, "slow lane": 20, "postmaster": 10, "backend": 30}
FAULTS_AT_FIRST = FAULTS | {"service": 10}
# Some workers are never killed from the end of the first minute on, and so the whole service neither: their memory at
# the end is compared with that after five minutes.
SPARED = 2
MINUTE = 60.0
MAX_GROWTH = 0.1
MOST_LINES = 40


class Memory(NamedTuple):
    """Megabytes of a process: all (RSS), and what it shares with nobody (USS)."""

    rss: float
    uss: float


@dataclass
class Outcome:
    report: Report
    statuses: Counter[int | None]
    unexpected: list[object]
    health: Health
    faults: Counter[str]
    events: Counter[str]
    seconds: float
    early: dict[int, Memory] = field(default_factory=dict)
    late: dict[int, Memory] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return not (any(self.report.faults.values()) or self.unexpected or self.grown)

    @property
    def grown(self) -> list[int]:
        """The processes of workers whose memory is not that of the beginning any more, or who are gone."""
        limit = 1 + MAX_GROWTH
        return [
            pid for pid, early in self.early.items() if pid not in self.late or self.late[pid].rss > early.rss * limit
        ]

    def lines(self) -> Iterator[str]:
        yield f"{self.faults.total()} faults in {self.seconds / 60:.0f} min: {_counts(self.faults)}"
        yield f"Network: {_counts(self.events)}"
        yield f"{self.report.requests} writes, {self.report.created} things created; {_counts(self.report.statuses)}"
        yield ", ".join(f"{name} {len(found)}" for name, found in self.report.faults.items())
        for name, found in self.report.faults.items():
            yield from (f"  {name}: {one}" for one in found[:5])
        yield f"{self.statuses.total()} other requests; {_counts(self.statuses)}; unexpected {len(self.unexpected)}"
        yield from (f"  {one}" for one in self.unexpected[:10])
        yield from (f"  {one}" for one in self.failures[:MOST_LINES])
        yield f"/health/live: {_counts(self.health.statuses)}; longest {self.health.longest * 1000:.0f} ms"
        for pid, early in self.early.items():
            late = self.late.get(pid)
            yield f"Process {pid} after five minutes: {_megabytes(early)}; at the end: {_megabytes(late)}"
        yield "Memory: " + ("more than a tenth above that of the beginning" if self.grown else "within a tenth")


def _counts(counts: Counter) -> str:
    return ", ".join(f"{name} × {count}" for name, count in sorted(counts.items(), key=str))


def _megabytes(memory: Memory | None) -> str:
    return f"RSS {memory.rss:.1f} MB, USS {memory.uss:.1f} MB" if memory else "gone"


@dataclass
class _Parts:
    service: Service
    database: Database
    proxy: Proxy
    network: Network
    started: dict[str, str]


@contextmanager
def _everything(log: Path) -> Iterator[_Parts]:
    """The service reaches its database by TCP through the network, and that through the proxy that cuts COMMITs."""
    with TemporaryDirectory() as name, temporary_copy("service") as copy:
        folder = Path(name)
        folder.chmod(0o711)
        cluster = Cluster(get_accessible_folder(folder / "server"), {"shared_buffers": "64MB"})
        with cluster.supervised(), Proxy(folder, cluster.sockets) as proxy, Network(folder / SOCKET) as network:
            # The proxy reads the protocol, which begins otherwise where encryption is asked for.
            options = "sslmode=disable&gssencmode=disable"
            address = f"postgresql://postgres@127.0.0.1:{network.port}/service?{options}"
            service = Service(copy, address, log, RATE_LIMIT_ANONYMOUS="0", METRICS_TOKEN="")
            started = service.start()
            try:
                yield _Parts(service, Database(cluster), proxy, network, started)
            finally:
                service.stop()


def run(minutes: float, folder: Path, enough: threading.Event) -> Outcome:
    """Runs for so long, or until it is enough. `folder` gets the ledger and the log of the service."""
    ledger = folder / "ledger"
    ledger.mkdir()
    with _everything(folder / "log") as parts:
        port, started = parts.service.port, parts.started
        manage(parts.service, parts.database.url, "seed", "--users", str(USERS))
        before = last_ids(parts.database.url)
        answered: list[float] = []
        key, password = started["API key"], started["Password"]
        session = sign_in(port, started["Administrator"], password)
        clients = [Client(index, port, key, ledger, answered, pause=SECONDS_BETWEEN_WRITES) for index in range(CLIENTS)]
        visitors = [Visitor(port, key, password, session) for _ in range(VISITORS)]
        for thread in (*clients, *visitors):
            thread.start()
        start = time.monotonic()
        try:
            with _watched(port) as looks:
                faults, early = _disturb(parts, answered, minutes, enough)
        finally:
            for thread in (*clients, *visitors):
                thread.stopping.set()
        took = time.monotonic() - start
        for thread in (*clients, *visitors):
            thread.join()
        late = {pid: _memory(pid) for pid in early if serves(pid)}
        statuses = sum((visitor.statuses for visitor in visitors), Counter[int | None]())
        unexpected = [one for visitor in visitors for one in visitor.unexpected]
        report = compare(ledger, parts.database.url, before)
        outcome = Outcome(report, statuses, unexpected, merge(looks), faults, parts.network.events, took, early, late)
    if unexpected:
        outcome.failures = _find_failures(folder / "log")
    return outcome


def _find_failures(log: Path) -> list[str]:
    """The lines of the log that tell of requests that were answered 500: the log ends with the run."""
    failed = {line["request_id"] for line in read_log(log) if line.get("status") == 500}
    return [json.dumps(line) for line in read_log(log) if line.get("request_id") in failed]


@contextmanager
def _watched(port: int) -> Iterator[list[Health]]:
    """Asks for the health of the service all along."""
    looks: list[Health] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            looks.append(probe(port, 1.0))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield looks
    finally:
        ended.set()
        thread.join()


def _disturb(
    parts: _Parts, answered: list[float], minutes: float, enough: threading.Event
) -> tuple[Counter[str], dict[int, Memory]]:
    """Faults for so many minutes. Returns how many there were, and the memory after five of them."""
    faults: Counter[str] = Counter()
    early: dict[int, Memory] = {}
    spared: list[int] = []
    start = time.monotonic()
    parts.proxy.rate, parts.network.seconds = CUT_COMMITS, SECONDS_BETWEEN_EVENTS
    while (now := time.monotonic() - start) < minutes * MINUTE and not enough.is_set():
        if not spared and now > min(MINUTE, minutes * MINUTE / 5):
            spared = parts.service.workers()[:SPARED]
        if not early and now > min(5 * MINUTE, minutes * MINUTE / 2):
            early = {process.pid: _memory(process.pid) for pid in spared for process in tree(pid)}
        kinds = FAULTS if spared else FAULTS_AT_FIRST
        kind = random.choices([*kinds], [*kinds.values()])[0]
        let_work(answered, 1)
        strike(kind, parts.service, parts.database, answered, spared)
        faults[kind] += 1
        enough.wait(random.expovariate(1 / SECONDS_BETWEEN_FAULTS))
    parts.proxy.rate, parts.network.seconds = 0, None
    return faults, early


def _memory(pid: int) -> Memory:
    info = psutil.Process(pid).memory_full_info()
    return Memory(info.rss / 1e6, info.uss / 1e6)
