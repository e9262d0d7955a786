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
from typing import NamedTuple

import psutil

from benchmarks.measuring import tree
from tests.faults.clients import Client
from tests.faults.logs import read_log
from tests.faults.proxy import SOCKET, Proxy
from tests.faults.report import Report, compare, last_ids
from tests.faults.service import Database, Service, everything, manage
from tests.faults.trial import CUT_COMMITS, let_work, strike
from tests.load.probe import Health, merge, probe
from tests.load.world import USERS, sign_in
from tests.service import serves
from tests.soak.network import Network
from tests.soak.traffic import Visitor
from tests.trials import at_work, describe, list_faults

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
    def passes(self) -> bool:
        return not (any(self.report.faults.values()) or self.unexpected or self.grown)

    @property
    def grown(self) -> list[int]:
        """The processes of workers whose memory is not that of the beginning any more, or who are gone."""
        limit = 1 + MAX_GROWTH
        return [
            pid for pid, early in self.early.items() if pid not in self.late or self.late[pid].rss > early.rss * limit
        ]

    def lines(self) -> Iterator[str]:
        yield f"{self.faults.total()} faults in {self.seconds / 60:.0f} min: {describe(self.faults)}"
        yield f"Network: {describe(self.events)}"
        yield f"{self.report.requests} writes, {self.report.created} things created; {describe(self.report.statuses)}"
        yield from list_faults(self.report.faults)
        yield f"{self.statuses.total()} other requests; {describe(self.statuses)}; unexpected {len(self.unexpected)}"
        yield from (f"  {one}" for one in self.unexpected[:10])
        yield from (f"  {one}" for one in self.failures[:MOST_LINES])
        yield f"/health/live: {describe(self.health.statuses)}; longest {self.health.longest * 1000:.0f} ms"
        for pid, early in self.early.items():
            late = self.late.get(pid)
            yield f"Process {pid} after five minutes: {_megabytes(early)}; at the end: {_megabytes(late)}"
        yield "Memory: " + ("more than a tenth above that of the beginning" if self.grown else "within a tenth")


def _megabytes(memory: Memory | None) -> str:
    return f"RSS {memory.rss:.1f} MB, USS {memory.uss:.1f} MB" if memory else "gone"


@contextmanager
def _everything(log: Path) -> Iterator[tuple[Service, Database, Proxy, Network, dict[str, str]]]:
    """The service reaches its database by TCP through the network, and that through the proxy that cuts COMMITs."""
    networks: list[Network] = []

    @contextmanager
    def lead(folder: Path) -> Iterator[str]:
        with Network(folder / SOCKET) as network:
            networks.append(network)
            # The proxy reads the protocol, which begins otherwise where encryption is asked for.
            options = "sslmode=disable&gssencmode=disable"
            yield f"postgresql://postgres@127.0.0.1:{network.port}/service?{options}"

    with everything(log, lead, RATE_LIMIT_ANONYMOUS="0", METRICS_TOKEN="") as (service, database, proxy, started):
        yield service, database, proxy, networks[0], started


def run(minutes: float, folder: Path, enough: threading.Event) -> Outcome:
    """Runs for so long, or until it is enough. `folder` gets the ledger and the log of the service."""
    ledger = folder / "ledger"
    ledger.mkdir()
    with _everything(folder / "log") as (service, database, proxy, network, started):
        port = service.port
        manage(service.copy, database.url, "seed", "--users", str(USERS))
        before = last_ids(database.url)
        answered: list[float] = []
        key, password = started["API key"], started["Password"]
        session = sign_in(port, started["Administrator"], password)
        clients = [Client(index, port, key, ledger, answered, pause=SECONDS_BETWEEN_WRITES) for index in range(CLIENTS)]
        visitors = [Visitor(port, key, password, session) for _ in range(VISITORS)]
        start = time.monotonic()
        with at_work([*clients, *visitors]), _watched(port) as looks:
            proxy.rate, network.seconds = CUT_COMMITS, SECONDS_BETWEEN_EVENTS
            faults, early = _disturb(service, database, answered, minutes, enough)
            proxy.rate, network.seconds = 0, None
            took = time.monotonic() - start
        late = {pid: _memory(pid) for pid in early if serves(pid)}
        statuses = sum((visitor.statuses for visitor in visitors), Counter[int | None]())
        unexpected = [one for visitor in visitors for one in visitor.unexpected]
        report = compare(ledger, database.url, before)
        outcome = Outcome(report, statuses, unexpected, merge(looks), faults, network.events, took, early, late)
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
    service: Service, database: Database, answered: list[float], minutes: float, enough: threading.Event
) -> tuple[Counter[str], dict[int, Memory]]:
    """Faults for so many minutes. Returns how many there were, and the memory after five of them."""
    faults: Counter[str] = Counter()
    early: dict[int, Memory] = {}
    spared: list[int] = []
    start = time.monotonic()
    while (now := time.monotonic() - start) < minutes * MINUTE and not enough.is_set():
        if not spared and now > min(MINUTE, minutes * MINUTE / 5):
            spared = service.workers()[:SPARED]
        if not early and now > min(5 * MINUTE, minutes * MINUTE / 2):
            early = {process.pid: _memory(process.pid) for pid in spared for process in tree(pid)}
        kinds = FAULTS if spared else FAULTS_AT_FIRST
        kind = random.choices([*kinds], [*kinds.values()])[0]
        let_work(answered, 1)
        strike(kind, service, database, answered, spared)
        faults[kind] += 1
        enough.wait(random.expovariate(1 / SECONDS_BETWEEN_FAULTS))
    return faults, early


def _memory(pid: int) -> Memory:
    info = psutil.Process(pid).memory_full_info()
    return Memory(info.rss / 1e6, info.uss / 1e6)
