"""The event loop goes on in the middle of a batch that runs in its thread (config.server.fast_lane).

Replaces: a loop that stands still until the batch ends. Buys: while a batch waits, or takes long, requests are
received, slow ones go to their lane, and what needs no database is answered.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable

from greenlet import getcurrent

# A batch of short requests ends before that. A longer one lets the loop go on between two of its tasks; then it has at
# least as long for itself as the loop took, so that a flood of requests cannot keep it from going on.
SECONDS_WITHOUT_LOOP = 0.005


class LoopTurns:
    """Turns that a loop gets from the greenlet that runs a batch.

    Args:
        loop: the loop, in whose thread the batches run.
        call_soon: has the loop call something, when what has arrived is received.

    Attributes:
        is_on: whether the loop runs in the middle of a batch: what it runs leaves the batch's connections open.
        seconds: of the processor, that the loop has taken so.
        seconds_away: for which batches stood still and did not wait for the database.
    """

    def __init__(self, loop: AbstractEventLoop, call_soon: Callable[[Callable[[], object]], object]) -> None:
        self.loop = loop
        self._call_soon = call_soon
        self.is_on = False
        self.seconds = self.seconds_away = 0.0
        # When the loop ran last, by the monotonic clock, and for how long it may stand still from then on.
        self._ran, self._pause = 0.0, SECONDS_WITHOUT_LOOP

    def begin(self) -> None:
        """Notes that a batch begins: the loop has just run."""
        self._ran, self._pause = time.monotonic(), SECONDS_WITHOUT_LOOP

    def give_way(self) -> None:
        """Has the loop do what there is to do now, where it has stood still for long enough."""
        batch = getcurrent()
        if batch.parent is None or time.monotonic() - self._ran <= self._pause:
            return
        # The loop runs what it is given in that order. It goes round twice at least: what another thread hands over is
        # made a task in the first round, which begins in the second.
        self.loop.call_soon(self._call_soon, batch.switch)
        began = time.monotonic()
        self._pause = max(SECONDS_WITHOUT_LOOP, self.leave())
        # The batch waited for nothing meanwhile, also where the loop slept (config.server.reception).
        self.seconds_away += time.monotonic() - began

    def leave(self) -> float:
        """Has the loop run until it switches to the greenlet of the caller, which is not the loop's own.

        Returns:
            For how many seconds of the processor it ran.
        """
        root = getcurrent()
        while root.parent is not None:
            root = root.parent
        began = time.thread_time()
        try:
            self.is_on = True
            # While the batch runs, there is no running loop (config.server.fast_lane.run_together).
            asyncio._set_running_loop(self.loop)
            root.switch()
        finally:
            asyncio._set_running_loop(None)
            self.is_on = False
            taken = time.thread_time() - began
            self.seconds += taken
            self._ran = time.monotonic()
        return taken
