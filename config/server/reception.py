"""Takes in what arrives at the same time a few requests in a turn of the loop, so that health is answered in between.

A thousand requests may arrive within a tenth of a second. To receive one takes tens of microseconds, and it waits in a
lane only after that.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable
from functools import partial

# What is received in a turn of the loop, which is so short mostly; in a longer one, as much more: whatever else there
# is to do, requests are received.
MAX_RECEIVED = 8
SECONDS_OF_A_TURN = 0.005
# The shortest sleep that gives up the processor. Linux makes it about 50 µs (PR_SET_TIMERSLACK of prctl(2)).
SECONDS_ASLEEP = 1e-6


class Reception:
    """Lets requests in, in the order in which they arrive.

    Args:
        loop: the loop on which they arrive.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        # In this turn. All of it: no turn is being waited for.
        self._room = MAX_RECEIVED
        # What lets requests go on, and what was to be called after them.
        self._waiting: deque[Callable[[], object]] = deque()
        # Of the processor, that this thread had taken when the last turn began.
        self._seconds = 0.0

    def admit(self) -> bool:
        """Lets the caller in, where there is room in this turn of the loop. Returns whether it did."""
        if not self._room:
            return False
        if self._room == MAX_RECEIVED:
            self._seconds = time.thread_time()
            self._loop.call_soon(self._begin_turn)
        self._room -= 1
        return True

    async def wait_for_turn(self) -> None:
        """Ends when the caller is let in, after those that have waited before it."""
        # The body may have come since the caller asked: then no turn may be due.
        if self.admit():
            return
        turn = self._loop.create_future()
        self._waiting.append(partial(_end, turn))
        await turn

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits to be let in."""
        return bool(self._waiting)

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Has the loop call something when all that have arrived before are let in."""
        if self.is_waited_for:
            self._waiting.append(partial(self._loop.call_soon, callback))
        else:
            self._loop.call_soon(callback)

    def _begin_turn(self) -> None:
        if not self._waiting:
            self._room = MAX_RECEIVED
            return
        self._loop.call_soon(self._begin_turn)
        # Those that are let in go on in the next turn, and nobody before them.
        self._room = 0
        for _ in range(min(self._get_share(), len(self._waiting))):
            self._waiting.popleft()()
        # Granian's threads, which accept and hand over, need the processor and the interpreter's lock in between. They
        # would wait for both until the whole of a burst is received.
        time.sleep(SECONDS_ASLEEP)

    def _get_share(self) -> int:
        before, self._seconds = self._seconds, time.thread_time()
        return MAX_RECEIVED * max(1, int((self._seconds - before) / SECONDS_OF_A_TURN))


def _end(turn: Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
