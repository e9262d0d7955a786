"""What the readers and the probe see while a case runs."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import NamedTuple

from benchmarks.load import Generator, Load
from benchmarks.measuring import busy, cpu, milliseconds, tree
from tests.load import cases, probe
from tests.load.cases import Found
from tests.load.client import wire
from tests.load.probe import Health
from tests.load.world import Target

READERS = 8
# The readers connect anew after so long, so that now one worker has more of them and now the other.
SECONDS_OF_A_SLICE = 1.0
SLICES_UNLOADED = 4
SLICES_LOADED = 3
MAX_P99 = 50.0
MIN_SHARE = 0.5
MAX_HEALTH = 0.05
# Of a burst, nobody knows how long its requests take.
MAX_HEALTH_IN_A_BURST = 0.3
BURSTS = {"abandoned", "bodies"}


class Readers(NamedTuple):
    """Answers a second, and milliseconds of an answer."""

    rate: float
    p50: float
    p99: float
    longest: float


class Machine(NamedTuple):
    """Shares of the machine's CPU: of everything, of the clients, of programs that have nothing to do with this."""

    busy: float
    clients: float
    others: float


@dataclass
class Row:
    """A case, with what was seen without it and beside it."""

    case: str
    unloaded: Readers
    loaded: Readers
    healthy: Health
    health: Health
    found: Found
    machine: Machine
    errors: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.loaded.rate / self.unloaded.rate

    def broken(self) -> list[str]:
        """The bounds that do not hold, as text."""
        found = [*self.found.broken, *self.errors]
        if self.loaded.p99 > MAX_P99:
            found.append(f"p99 of the readers {self.loaded.p99:.0f} ms > {MAX_P99:.0f} ms")
        if self.share < MIN_SHARE:
            found.append(f"throughput of the readers {self.share:.0%} < {MIN_SHARE:.0%}")
        most = MAX_HEALTH_IN_A_BURST if self.case in BURSTS else MAX_HEALTH
        if self.health.longest > most:
            found.append(f"/health/live after {self.health.longest * 1000:.0f} ms > {most * 1000:.0f} ms")
        if self.health.statuses.keys() != {200}:
            found.append(f"/health/live answered {dict(self.health.statuses)}")
        return found


def summarize(loads: Sequence[Load], seconds: float) -> Readers:
    """What came of slices that took so many seconds together."""
    times = sorted(chain.from_iterable(load.times for load in loads)) or [seconds]
    return Readers(len(times) / seconds, milliseconds(times, 0.5), milliseconds(times, 0.99), times[-1] * 1000)


class Meter:
    """The processes of the load, which are kept from one case to the next."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.generator = Generator()
        # Of many people in turn, so that nobody has two under way.
        self.requests = [
            wire(target.port, "GET", path.format(person.id), person.headers)
            for path in ("/api/v1/users/{}", "/api/v1/users/{}/orders", "/api/v1/protected")
            for person in target.people["readers"]
        ]
        spawn = multiprocessing.get_context("spawn")
        # What is imported and compiled once is no part of a measurement: to import the cases takes a processor for a
        # fifth of a second, and Linux lets the worker on that one wait.
        self.case = ProcessPoolExecutor(1, spawn, initializer=import_module, initargs=(cases.__name__,))
        self.probe = ProcessPoolExecutor(1, spawn, initializer=probe.take_precedence)
        self.errors: list[str] = []
        for pool in (self.case, self.probe):
            pool.submit(probe.probe, target.port, 0.1).result()
        self._read(lambda count: count < SLICES_UNLOADED)

    def measure(self, name: str, server: int, postmaster: int) -> Row:
        """Runs a case beside the readers; `server` and `postmaster` are the processes whose CPU is the service's."""
        self.errors = []
        unloaded, healthy = self._see(lambda count: count < SLICES_UNLOADED)
        before, start = _spent(server, postmaster), time.perf_counter()
        case = self.case.submit(cases.run, name, self.target)
        loaded, health = self._see(lambda count: count < SLICES_LOADED or not case.done())
        found = case.result()
        capacity = (time.perf_counter() - start) * (os.cpu_count() or 1)
        machine = Machine(*(after - earlier for after, earlier in zip(_spent(server, postmaster), before, strict=True)))
        shares = Machine(*(spent / capacity for spent in machine))
        return Row(name, unloaded, loaded, healthy, health, found, shares, self.errors)

    def _see(self, more: Callable[[int], bool]) -> tuple[Readers, Health]:
        """Slice after slice, as long as there shall be more than so many."""
        with ThreadPoolExecutor(1) as threads:
            health = threads.submit(self._probe, more)
            return self._read(more), health.result()

    def _read(self, more: Callable[[int], bool]) -> Readers:
        loads: list[Load] = []
        count, start = 0, time.perf_counter()
        while more(count):
            count += 1
            try:
                loads.append(self.generator.run(self.target.port, self.requests, READERS, SECONDS_OF_A_SLICE))
            except RuntimeError as error:
                self.errors.append(f"a reader: {str(error)[:200]}")
        return summarize(loads, time.perf_counter() - start)

    def _probe(self, more: Callable[[int], bool]) -> Health:
        parts: list[Health] = []
        while more(len(parts)):
            parts.append(self.probe.submit(probe.probe, self.target.port, SECONDS_OF_A_SLICE).result())
        return probe.merge(parts)


def _spent(server: int, postmaster: int) -> Machine:
    """Seconds of CPU until now. All that belongs to the measurement descends from this process."""
    machine, ours = busy(), sum(map(cpu, tree(os.getpid())))
    service = sum(map(cpu, chain(tree(server), tree(postmaster))))
    return Machine(machine, ours - service, machine - ours)
