"""The event loop goes on while a batch in its thread waits for the database.

Replaces: psycopg's wait, which blocks the thread. Buys: while a COMMIT waits for the disk, or the server for a
processor, requests are received, slow ones go to their lane, and what needs no database is answered.
"""

from __future__ import annotations

import asyncio
import select
import time
from asyncio import AbstractEventLoop
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet
from psycopg import Connection, abc
from psycopg.waiting import Ready, Wait

Result = TypeVar("Result")

# Most waits are shorter, and end sooner where the thread does nothing else.
MILLISECONDS_TO_BLOCK = 5


class LoopWaits:
    """Waits for the server of one connection after the other, in the thread of a loop.

    Args:
        loop: the loop.

    Attributes:
        is_on: whether the loop runs while something waits, so that nothing else may use the connection.
        seconds: of the processor, that the loop took meanwhile.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self.is_on = False
        self.seconds = 0.0

    def attach(self, connection: Connection[Any]) -> None:
        """Has a new connection wait so, which no other thread uses."""
        self._file = connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._wait_blocking = connection.wait
        connection.wait = self._wait  # type: ignore[assignment, method-assign]

    def _wait(self, generator: abc.PQGen[Result], *arguments: Any, **options: Any) -> Result:
        waiting = getcurrent()
        if waiting.parent is None or arguments or options:
            # The loop itself cannot be left, and what has a time-out is not a statement.
            return self._wait_blocking(generator, *arguments, **options)
        try:
            state = next(generator)
            while True:
                state = generator.send(self._get_ready(waiting, state))
        except StopIteration as ended:
            return ended.value

    def _get_ready(self, waiting: greenlet, state: Wait) -> Ready:
        if state == Wait.R:
            if not self._poll.poll(MILLISECONDS_TO_BLOCK):
                self._run_loop(waiting)
            return Ready.R
        # A statement that is longer than the buffer of the socket.
        poll = select.poll()
        poll.register(self._file, select.POLLIN | select.POLLOUT if state == Wait.RW else select.POLLOUT)
        ((_, events),) = poll.poll()
        return Ready((Ready.R if events & ~select.POLLOUT else 0) | (Ready.W if events & select.POLLOUT else 0))

    def _run_loop(self, waiting: greenlet) -> None:
        root = waiting
        while root.parent is not None:
            root = root.parent
        self._loop.add_reader(self._file, waiting.switch)
        began = time.thread_time()
        try:
            self.is_on = True
            # The batch has none for its time (config.server.fast_lane.run_together).
            asyncio._set_running_loop(self._loop)
            root.switch()
        finally:
            asyncio._set_running_loop(None)
            self.is_on = False
            self.seconds += time.thread_time() - began
            self._loop.remove_reader(self._file)
