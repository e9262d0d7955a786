"""The event loop goes on while a batch in its thread waits for the database.

Replaces: psycopg's wait, which blocks the thread. Buys: a COMMIT that waits for the disk, or a server that waits for a
processor, delays nobody else.
"""

from __future__ import annotations

import select
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet
from psycopg import Connection, abc
from psycopg.waiting import Ready, Wait

from config.fastpath.loop_turns import LoopTurns

Result = TypeVar("Result")

# Most waits are shorter, and end sooner where the thread does nothing else.
MILLISECONDS_TO_BLOCK = 5


class LoopWaits:
    """Waits for the server of one connection after the other, in the thread of a loop.

    Args:
        turns: of the loop.
    """

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns

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
            if self._poll.poll(MILLISECONDS_TO_BLOCK):
                # Megabytes may be received without a wait.
                self._turns.give_way()
            else:
                self._run_loop(waiting)
            return Ready.R
        # A statement that is longer than the buffer of the socket.
        poll = select.poll()
        poll.register(self._file, select.POLLIN | select.POLLOUT if state == Wait.RW else select.POLLOUT)
        ((_, events),) = poll.poll()
        return Ready((Ready.R if events & ~select.POLLOUT else 0) | (Ready.W if events & select.POLLOUT else 0))

    def _run_loop(self, waiting: greenlet) -> None:
        loop = self._turns.loop
        loop.add_reader(self._file, waiting.switch)
        try:
            # The rest of the time, the batch waited for the database.
            taken = self._turns.leave()
            self._turns.seconds_away += taken
        finally:
            loop.remove_reader(self._file)
