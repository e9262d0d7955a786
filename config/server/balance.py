"""Divides connections that stay open among the workers by what each of these has to do.

The kernel divides them by a hash of the addresses when they are made: of sixteen, one worker may get thirteen, and a
worker that is started again has none. Who keeps a connection keeps its worker, and waits where many do while another
worker has nothing to do. So a worker that has more to do than another closes some with its next answers (RFC 9112,
section 9.6), and their clients connect anew.
"""

from __future__ import annotations

import math
import mmap
import struct
import time
from asyncio import AbstractEventLoop
from collections.abc import Sequence

from config.server.draining import Drain
from config.server.readiness import probe

SECONDS_BETWEEN_LOOKS = 0.25
# What a worker told longer ago is not looked at. It may have ended, and who connects anew would wait for its successor.
SECONDS_TO_TRUST = 2 * SECONDS_BETWEEN_LOOKS
# By how much a worker must have more to do than another: by more than one connection alone, which cannot be divided.
RATIO, DIFFERENCE = 1.25, 1.1
_FIELDS = struct.Struct("dd")


class Loads:
    """What each worker has to do, in memory that all of them share if it is made before they are forked.

    Args:
        workers: how many there are.
    """

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * _FIELDS.size)

    def tell(self, index: int, load: float) -> None:
        """Notes the load of a worker."""
        _FIELDS.pack_into(self._memory, index * _FIELDS.size, load, time.monotonic())

    def look(self) -> list[float]:
        """The loads that were told lately."""
        earliest = time.monotonic() - SECONDS_TO_TRUST
        return [load for load, told in _FIELDS.iter_unpack(self._memory[:]) if told > earliest]


class Balance:
    """Measures the load of this worker, and has it close connections where another one has less to do.

    The load is how many requests were under way since the last look, on average. One that hangs counts, too.

    Args:
        loads: of all workers.
        index: of this one.
        drain: closes connections.
    """

    def __init__(self, loads: Loads, index: int, drain: Drain) -> None:
        self._loads, self._index, self._drain = loads, index, drain
        self._under_way = 0
        # Of all requests together, under way since the last look; counted until then, by the monotonic clock.
        self._seconds, self._counted = 0.0, time.monotonic()
        self._looked = self._counted

    def begin(self) -> None:
        """A request is under way."""
        self._count()
        self._under_way += 1

    def end(self) -> None:
        """One is under way no more, whatever became of it."""
        self._count()
        self._under_way -= 1

    def look(self, loop: AbstractEventLoop) -> None:
        """Tells the load, and compares it with that of the others, now and from time to time."""
        loop.call_later(SECONDS_BETWEEN_LOOKS, self.look, loop)
        self._count()
        load = self._seconds / ((self._counted - self._looked) or math.inf)
        self._seconds, self._looked = 0.0, self._counted
        # Who ends, or answers at once that the database is silent, has little to do, and shall get nothing more.
        if self._drain.is_on or probe.is_silent:
            self._drain.close_next(0)
            return
        self._loads.tell(self._index, load)
        self._drain.close_next(count_excess(load, self._loads.look()))

    def _count(self) -> None:
        now = time.monotonic()
        self._seconds += self._under_way * (now - self._counted)
        self._counted = now


def count_excess(load: float, loads: Sequence[float]) -> int:
    """How many connections a worker has too many.

    As many as it has above the average. The kernel gives some of them back to it, half of them where there are two
    workers, so that hardly ever too many go at once.

    Args:
        load: of the worker.
        loads: of all workers, itself among them.
    """
    above = load - sum(loads) / len(loads)
    if above <= 0 or load <= RATIO * min(loads) + DIFFERENCE:
        return 0
    # Not rounded up: with a connection less than workers, one that has two of them would close both again and again.
    return max(1, round(above))
