"""More requests than the service can answer: what it still answers, and how soon it tells the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context

from tests.load.arrivals import Offered, Outcome, Plan, go_first, offer
from tests.load.cases import Found
from tests.load.ways import Way, build_requests, ways
from tests.load.world import World

SECONDS = 8.0
CONNECTIONS_AT_THE_PEAK = 64
# As many as requests wait at the most, and as are refused meanwhile.
CONNECTIONS = 2000
FACTORS = (2.0, 5.0)
# Of the peak, by the processors that the load leaves to the service: the load is on the same machine. A refusal by a
# worker takes about a tenth of the processor time of what it refuses, and at five times the capacity there are four of
# them for each answer. So the proxy refuses what is beyond the capacity.
MIN_GOODPUT = {"directly": {2.0: 0.7, 5.0: 0.3}, "behind nginx": {2.0: 0.85, 5.0: 0.75}}
# Of half of the refusals.
MAX_REFUSAL = {"directly": 0.5, "behind nginx": 0.1}
SECONDS_TO_RECOVER = 10.0
# Of the peak, once there is no overload any more.
SHARE_AFTERWARDS = 0.5
MAX_P99_AFTERWARDS = 0.1


def overload(world: World) -> Found:
    """Measures the peak, offers a multiple of it, and then half of it: directly, and behind the proxy of deploy/."""
    found, requests = Found(), build_requests(world.target)
    with (
        ProcessPoolExecutor(1, get_context("spawn"), go_first) as pool,
        closing(ways(world.target)) as each_way,
    ):
        for way in each_way:
            _measure(found, pool, way, requests)
    return found


def _measure(found: Found, pool: Executor, way: Way, requests: Sequence[bytes]) -> None:
    _offer(pool, way, requests, None, CONNECTIONS_AT_THE_PEAK)
    peak = _offer(pool, way, requests, None, CONNECTIONS_AT_THE_PEAK)
    rate = _rate(peak.outcomes)
    found.notes.append(f"{way.name}: peak {rate:,.0f} answers a second")
    for factor in FACTORS:
        _judge(found, way, factor, peak, _offer(pool, way, requests, factor * rate, CONNECTIONS))
        start = time.perf_counter()
        while not _is_normal(_offer(pool, way, requests, SHARE_AFTERWARDS * rate, 100, seconds=1.0).outcomes):
            if time.perf_counter() - start > SECONDS_TO_RECOVER:
                break
        found.bound(f"{way.name} {factor:g} ×: normal after", time.perf_counter() - start, SECONDS_TO_RECOVER)


def _count_processors(offered: Offered) -> float:
    """Those that the load leaves to what it measures."""
    return len(os.sched_getaffinity(0)) - offered.processor


def _offer(
    pool: Executor,
    way: Way,
    requests: Sequence[bytes],
    rate: float | None,
    connections: int,
    *,
    seconds: float = SECONDS,
) -> Offered:
    return pool.submit(offer, Plan(way.port, requests, rate, seconds, connections, way.authority)).result()


def _rate(outcomes: Sequence[Outcome], seconds: float = SECONDS) -> float:
    return sum(_is_good(each) and each.due + each.seconds <= seconds for each in outcomes) / seconds


def _is_good(outcome: Outcome) -> bool:
    return outcome.status in {200, 201}


def _judge(found: Found, way: Way, factor: float, peak: Offered, offered: Offered) -> None:
    outcomes = offered.outcomes
    found.statuses.update(outcome.status for outcome in outcomes)
    share = _rate(outcomes) / _rate(peak.outcomes)
    share_of_processors = share * _count_processors(peak) / _count_processors(offered)
    text = (
        f"{way.name} {factor:g} ×: goodput {share_of_processors:.0%} of the peak ({share:.0%} with the load beside it)"
    )
    found.notes.append(text)
    if share_of_processors < MIN_GOODPUT[way.name][factor]:
        found.broken.append(f"{text} < {MIN_GOODPUT[way.name][factor]:.0%}")
    refused = [each for each in outcomes if each.status == 503]
    for name, chosen in (("503", refused), ("answers", [each for each in outcomes if _is_good(each)])):
        median, p99 = (_percentile(chosen, part) * 1000 for part in (0.5, 0.99))
        found.notes.append(
            f"{way.name} {factor:g} ×: {name} after {median:.0f} ms in the median, 99th percentile {p99:.0f} ms"
        )
    found.bound(f"{way.name} {factor:g} ×: 503 after", _percentile(refused, 0.5), MAX_REFUSAL[way.name])
    untold = sum(not each.told for each in outcomes if each.status == 503)
    others = {each.status for each in outcomes} - {200, 201, 503}
    if untold or others:
        found.broken.append(
            f"{way.name} {factor:g} ×: {untold} 503 without Retry-After, and {others or 'nothing'} else"
        )


def _percentile(outcomes: Sequence[Outcome], part: float) -> float:
    times = sorted(each.seconds for each in outcomes) or [0.0]
    return times[min(len(times) - 1, int(len(times) * part))]


def _is_normal(outcomes: Sequence[Outcome]) -> bool:
    return all(map(_is_good, outcomes)) and _percentile(outcomes, 0.99) <= MAX_P99_AFTERWARDS
