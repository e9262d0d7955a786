"""A run of the faults: clients at work, kills at random, then the comparison."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.clients import Client
from tests.faults.events import Told
from tests.faults.report import Report, compare, last_ids, longest_gaps
from tests.faults.service import Database, Service, everything
from tests.service import wait_for
from tests.trials import at_work, describe, list_faults

CLIENTS = 8
AT_ONCE = 200
# A worker is killed most often: the others keep the clients at work. The whole service takes seconds to start.
KINDS = {"worker": 88, "postmaster": 5, "backend": 5, "service": 2, **Told.KINDS}
CUT_COMMITS = 0.05
# Contract, section 9: from the database accepting to the service answering.
MOST_SECONDS = 1.0


class AtOnce(NamedTuple):
    """How often each status was answered, and the 99th percentile of the time in seconds."""

    statuses: Counter[int]
    slowest: float


@dataclass
class Outcome:
    at_once: AtOnce
    report: Report
    events: dict[str, list[Any]]
    told: str
    kills: Counter[str]
    cuts: dict[str, int]
    gaps: dict[str, float]
    returns: list[float]
    seconds: float

    @property
    def faults(self) -> dict[str, list[Any]]:
        return {**self.report.faults, **self.events}

    @property
    def right(self) -> bool:
        return not any(self.faults.values()) and {201} <= self.at_once.statuses.keys() <= {201, 409}

    @property
    def passes(self) -> bool:
        """On a machine that has nothing else to do, it is also quick."""
        return self.right and max(self.at_once.slowest, self.gaps["worker"], *self.returns) < MOST_SECONDS

    def lines(self) -> Iterator[str]:
        yield (
            f"{AT_ONCE} clients with one key: {describe(self.at_once.statuses)};"
            f" 99th percentile {self.at_once.slowest * 1000:.0f} ms"
        )
        yield f"{self.kills.total()} kills in {self.seconds:.0f} s: {describe(self.kills)}"
        yield f"Connections cut: {describe(self.cuts)}"
        yield f"{self.report.requests} requests, {self.report.created} things created; {describe(self.report.statuses)}"
        yield self.told
        yield from list_faults(self.faults)
        gaps = ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in self.gaps.items())
        yield f"Longest gap between two effects, by what was killed in it: {gaps}"
        yield f"From the database accepting to the next effect: {max(self.returns, default=0):.2f} s at the most"


def run(kills: int, folder: Path, enough: threading.Event | None = None) -> Outcome:
    """Kills so many times, or until it is enough. `folder` gets the ledger and the log of the service."""
    ledger = folder / "ledger"
    ledger.mkdir()
    with everything(folder / "log") as (service, database, proxy, started):
        key = started["API key"]
        at_once = one_key(service.port, key)
        told = Told(service, database.url, key, folder)
        before = last_ids(database.url)
        answered: list[float] = []
        clients = [Client(index, service.port, key, ledger, answered) for index in range(CLIENTS)]
        with told.running():
            with at_work([*clients, *told.authors]):
                proxy.rate = CUT_COMMITS
                start = time.monotonic()
                times, returns = _kill(kills, database, told, answered, enough or threading.Event())
                seconds = time.monotonic() - start
                proxy.rate = 0
            events = told.wait()
        return Outcome(
            at_once,
            compare(ledger, database.url, before),
            events,
            told.summary,
            Counter(kind for _, kind in times),
            {**proxy.cuts, "request not answered": sum(client.cuts for client in clients)},
            longest_gaps(answered, [(at, _gravity(kind)) for at, kind in times]),
            returns,
            seconds,
        )


def _gravity(kind: str) -> str:
    return "nothing" if kind in Told.KINDS else "database" if kind in {"postmaster", "backend"} else kind


def _kill(
    number: int, database: Database, told: Told, answered: list[float], enough: threading.Event
) -> tuple[list[tuple[float, str]], list[float]]:
    """Returns when what was killed, and how long after the database was back the next effect was."""
    times, returns = [], []
    # Every kind, also in a short run.
    kinds = [*KINDS, *random.choices([*KINDS], [*KINDS.values()], k=max(0, number - len(KINDS)))]
    for done, kind in enumerate(kinds):
        if enough.is_set():
            break
        if done == len(kinds) // 2:
            told.end_endpoints()
        let_work(answered, random.randrange(1, 30))
        times.append((time.monotonic(), kind))
        if kind in Told.KINDS:
            told.kill(kind)
            continue
        returned = strike(kind, told.service, database, answered)
        returns += [] if returned is None else [returned]
        told.deliverers.heal()
    return times, returns


def strike(
    kind: str, service: Service, database: Database, answered: list[float], spared: Collection[int] = ()
) -> float | None:
    """Kills one of KINDS or a slow lane, but no worker that is spared, and waits until everything runs again.

    Returns how long after the database was back the next effect was, if that was killed.
    """
    returned = None
    match kind:
        case "worker":
            service.kill_worker(spared)
        case "slow lane":
            service.kill_slow_lane(spared)
        case "service":
            service.kill()
            service.start()
        case part:
            accepts = database.kill(part)
            wait_for(lambda: answered[-1] > accepts)
            returned = answered[-1] - accepts
    service.heal()
    return returned


def let_work(answered: list[float], effects: int) -> None:
    """Waits until the clients have got so much done, so that every kill meets them at work."""
    enough = len(answered) + effects
    wait_for(lambda: len(answered) >= enough)


def one_key(port: int, key: str) -> AtOnce:
    """Many clients at once with one key."""
    start = threading.Barrier(AT_ONCE)

    def send(_: int) -> tuple[int, float]:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.connect()
            start.wait()
            began = time.monotonic()
            headers = {"X-API-Key": key, "Content-Type": "application/json", "Idempotency-Key": "at-once"}
            connection.request("POST", "/orders", b'{"item": "at once", "qty": 1}', headers)
            with connection.getresponse() as response:
                response.read()
                return response.status, time.monotonic() - began

    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses, times = zip(*pool.map(send, range(AT_ONCE)), strict=True)
    return AtOnce(Counter(statuses), sorted(times)[AT_ONCE * 99 // 100])
