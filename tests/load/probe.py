"""Asks for the health of the service fifty times a second, on a new connection each time, whatever else waits."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tests.load.client import Answer, ask

SECONDS_BETWEEN = 0.02


class Health(NamedTuple):
    """The longest answer; how late at most the probe itself was, in seconds; how often which status."""

    longest: float
    late: float
    statuses: Counter[int | None]


def take_precedence() -> None:
    """Runs this process before all others, where it may, so that it measures the service and not its own waiting.

    It sleeps for nearly all of its time, and takes nothing from those that it measures.
    """
    if sys.platform == "linux":
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def probe(port: int, seconds: float) -> Health:
    """Probes for some seconds, and waits for what is still to be answered then."""
    return asyncio.run(_probe(lambda: ask(port, "GET", "/health/live", {}), seconds))


async def _probe(look: Callable[[], asyncio.Future[Answer]], seconds: float) -> Health:
    start = due = time.perf_counter()
    late, looks = 0.0, []
    while due < start + seconds:
        await asyncio.sleep(due - time.perf_counter())
        late = max(late, time.perf_counter() - due)
        looks.append(asyncio.ensure_future(look()))
        due += SECONDS_BETWEEN
    answers = await asyncio.gather(*looks)
    return Health(max(answer.seconds for answer in answers), late, Counter(answer.status for answer in answers))


def merge(parts: list[Health]) -> Health:
    statuses: Counter[int | None] = sum((part.statuses for part in parts), Counter())
    return Health(max(part.longest for part in parts), max(part.late for part in parts), statuses)
