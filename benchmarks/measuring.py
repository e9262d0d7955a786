"""One measurement: a load, and what it took of whom."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.load import Generator
from benchmarks.systems import FOLDER, System
from config.local.cluster import Cluster


class Round(NamedTuple):
    """A system under a load for some seconds.

    Attributes:
        rate: answers a second.
        p50, p99: milliseconds.
        server, database, load: milliseconds of CPU a request, of the server, PostgreSQL and the load generator.
        busiest: the share of the server's CPU that its busiest worker had.
        foreign: the share of the machine's CPU that other programs had.
        rss, pss: MB of the server's processes. RSS counts what they share once for each, PSS once.
    """

    system: str
    case: str
    users: int
    rate: float
    p50: float
    p99: float
    server: float
    database: float
    load: float
    busiest: float
    foreign: float
    rss: float
    pss: float


class Meter:
    """Measures systems on one database server."""

    def __init__(self, cluster: Cluster) -> None:
        self.postmaster = int((cluster.data / "postmaster.pid").read_text().partition("\n")[0])
        self.generator = Generator()

    def measured(
        self, system: System, case: str, users: int, requests: Sequence[bytes], *, connections: int, seconds: float
    ) -> Round:
        before, start = self._spent(system), time.perf_counter()
        load = self.generator.run(system.port, requests, connections, seconds)
        took = time.perf_counter() - start
        spent = {pid: cpu - before.get(pid, 0.0) for pid, cpu in self._spent(system).items()}
        database, machine, own = (spent.pop(name) for name in ("database", "machine", "own"))
        server = sum(spent.values())
        workers = [cpu for pid, cpu in spent.items() if pid != str(system.process.pid)]
        foreign = machine - server - database - load.cpu - own
        memory = [process.memory_full_info() for process in tree(system.process.pid)]
        return Round(
            system=system.name,
            case=case,
            users=users,
            rate=load.in_time / seconds,
            p50=milliseconds(load.times, 0.5),
            p99=milliseconds(load.times, 0.99),
            server=server * 1000 / len(load.times),
            database=database * 1000 / len(load.times),
            load=load.cpu * 1000 / len(load.times),
            busiest=max(workers) / max(sum(workers), 1e-9),
            foreign=max(0.0, foreign) / (took * (os.cpu_count() or 1)),
            rss=sum(part.rss for part in memory) / 1e6,
            pss=sum(part.pss for part in memory) / 1e6,
        )

    def _spent(self, system: System) -> dict[str, float]:
        """Seconds of CPU until now: of each process of the server, of the database, of this one, of the machine."""
        times = {str(process.pid): cpu(process) for process in tree(system.process.pid)}
        return times | {
            "database": sum(map(cpu, tree(self.postmaster))),
            "machine": busy(),
            "own": time.process_time(),
        }


def busy() -> float:
    """Seconds of CPU that the machine has spent until now."""
    machine = psutil.cpu_times()
    return float(sum(machine) - machine.idle - machine.iowait - machine.guest - machine.guest_nice)


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that descend from it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU, with that of children that have ended: the database has some for single queries."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def milliseconds(ordered: Sequence[float], part: float) -> float:
    """The percentile of ascending seconds, `part` from 0 to 1."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


def save(name: str, rounds: Sequence[Round]) -> Path:
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps([measured._asdict() for measured in rounds], indent=1))
    return path


def announce(seconds: float) -> None:
    print(f"About {math.ceil(seconds / 60)} min, and longer the first time, which fills the database", flush=True)
