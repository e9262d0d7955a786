"""More requests than the service can answer: what it still answers, and how soon it tells the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from multiprocessing import get_context
from typing import NamedTuple

import psutil
import psycopg

from tests.load.arrivals import Outcome, Plan, offer
from tests.load.cases import Found
from tests.load.ways import Way, build_requests, ways
from tests.load.world import World

SECONDS = 8.0
CONNECTIONS_AT_THE_PEAK = 64
# As many as requests wait at the most, and as are refused meanwhile.
CONNECTIONS = 2000
FACTORS = (2.0, 5.0)
# Of the peak, on average before and afterwards. A refusal by a worker takes about a tenth of the processor time of what
# it refuses, and at five times the capacity there are four of them for each answer. So the proxy refuses what is beyond
# the capacity.
MIN_GOODPUT = {"directly": 0.5, "behind nginx": 0.8}
# Of half of the refusals.
MAX_REFUSAL = {"directly": 1.0, "behind nginx": 0.1}
SECONDS_TO_RECOVER = 10.0
# Of the peak, once there is no overload any more.
SHARE_AFTERWARDS = 0.5
MAX_P99_AFTERWARDS = 0.1
MIN_PEAK_AFTERWARDS = 0.5


def overload(world: World) -> Found:
    """Measures the peak, offers a multiple of it, then half of it, and measures it again.

    Directly, and behind the proxy of deploy/.

    The service and its database have half of the processors, and what stands for other machines the rest: the clients,
    and nginx. Who runs nginx beside the workers pays for its refusals with their time.
    """
    found, requests = Found(), build_requests(world.target)
    with (
        _divided_processors(world),
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        closing(ways(world.target)) as each_way,
    ):
        for way in each_way:
            _measure(found, Load(pool, way, requests))
    return found


@contextmanager
def _divided_processors(world: World) -> Iterator[None]:
    """Keeps the service and its database to half of the processors, and what this process starts to the others."""
    processors = sorted(os.sched_getaffinity(0))
    half = len(processors) // 2
    assert half, "This case needs two processors."
    with psycopg.connect(world.target.database) as connection:
        postmaster = psutil.Process(connection.info.backend_pid).parent()
    assert postmaster
    roots = (psutil.Process(world.service.process.pid), postmaster)
    try:
        _pin(roots, processors[half:])
        os.sched_setaffinity(0, processors[:half])
        yield
    finally:
        os.sched_setaffinity(0, processors)
        _pin(roots, processors)


def _pin(roots: Sequence[psutil.Process], processors: Collection[int]) -> None:
    """Processes, and those that they have started. What these start from now on inherits it."""
    for process in (each for root in roots for each in (root, *root.children(recursive=True))):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            for thread in process.threads():
                os.sched_setaffinity(thread.id, processors)


class Load(NamedTuple):
    """What is sent, and from where."""

    pool: Executor
    way: Way
    requests: Sequence[bytes]

    def offer(self, rate: float | None, connections: int, seconds: float = SECONDS) -> list[Outcome]:
        way = self.way
        plan = Plan(way.port, self.requests, rate, seconds, connections, way.authority)
        return self.pool.submit(offer, plan).result().outcomes


def _measure(found: Found, load: Load) -> None:
    load.offer(None, CONNECTIONS_AT_THE_PEAK)
    peak = _find_peak(found, load)
    for factor in FACTORS:
        outcomes = load.offer(factor * peak, CONNECTIONS)
        start = time.perf_counter()
        while not _is_normal(load.offer(SHARE_AFTERWARDS * peak, 100, seconds=1.0)):
            if time.perf_counter() - start > SECONDS_TO_RECOVER:
                break
        found.bound(f"{load.way.name} {factor:g} ×: normal after", time.perf_counter() - start, SECONDS_TO_RECOVER)
        # The speed of a machine that others share changes within seconds.
        before, peak = peak, _find_peak(found, load)
        if peak < MIN_PEAK_AFTERWARDS * before:
            found.broken.append(f"{load.way.name} {factor:g} ×: a peak of {peak:,.0f} after {before:,.0f}")
        _judge(found, load.way.name, factor, outcomes, (before + peak) / 2)


def _find_peak(found: Found, load: Load) -> float:
    peak = _rate(load.offer(None, CONNECTIONS_AT_THE_PEAK))
    found.notes.append(f"{load.way.name}: peak {peak:,.0f} answers a second")
    return peak


def _rate(outcomes: Sequence[Outcome], seconds: float = SECONDS) -> float:
    return sum(_is_good(each) and each.due + each.seconds <= seconds for each in outcomes) / seconds


def _is_good(outcome: Outcome) -> bool:
    return outcome.status in {200, 201}


def _judge(found: Found, way: str, factor: float, outcomes: Sequence[Outcome], peak: float) -> None:
    found.statuses.update(outcome.status for outcome in outcomes)
    share = _rate(outcomes) / peak
    text = f"{way} {factor:g} ×: goodput {share:.0%} of the peak"
    found.notes.append(text)
    if share < MIN_GOODPUT[way]:
        found.broken.append(f"{text} < {MIN_GOODPUT[way]:.0%}")
    refused = [each for each in outcomes if each.status == 503]
    found.bound(f"{way} {factor:g} ×: 503 in the median after", _percentile(refused, 0.5), MAX_REFUSAL[way])
    answers = [each for each in outcomes if _is_good(each)]
    for name, chosen, part in (("503, 99th percentile", refused, 0.99), ("answers, median", answers, 0.5)):
        found.notes.append(f"{way} {factor:g} ×: {name} {_percentile(chosen, part) * 1000:.0f} ms")
    untold = sum(not each.told for each in outcomes if each.status == 503)
    others = {each.status for each in outcomes} - {200, 201, 503}
    if untold or others:
        found.broken.append(f"{way} {factor:g} ×: {untold} 503 without Retry-After, and {others or 'nothing'} else")


def _percentile(outcomes: Sequence[Outcome], part: float) -> float:
    times = sorted(each.seconds for each in outcomes) or [0.0]
    return times[min(len(times) - 1, int(len(times) * part))]


def _is_normal(outcomes: Sequence[Outcome]) -> bool:
    return all(map(_is_good, outcomes)) and _percentile(outcomes, 0.99) <= MAX_P99_AFTERWARDS
