"""Deadlines of many short waits of the event loop, nearly all of which end long before."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Task
from collections.abc import Awaitable
from typing import Any, TypeVar

Result = TypeVar("Result")

SECONDS_BETWEEN_LOOKS = 0.25


class Deadline:
    """Ends what takes longer than it may.

    `asyncio.timeout` makes a timer for each wait and cancels it again, which takes a twentieth of a POST. So the waits
    are looked after together.

    Args:
        loop: the event loop.
        seconds: that each may take; it is ended within SECONDS_BETWEEN_LOOKS of that.
    """

    def __init__(self, loop: AbstractEventLoop, seconds: float) -> None:
        self._loop, self._seconds = loop, seconds
        # When each has to end, by the clock of the loop.
        self._ends: dict[Task, float] = {}
        self._expired: set[Task] = set()
        self._end_late_ones()

    async def wait_for(self, awaitable: Awaitable[Result]) -> Result:
        """What an awaitable gives; a task may wait for one at a time.

        Raises:
            TimeoutError: it took too long, and was cancelled.
        """
        task: Any = asyncio.current_task(self._loop)
        self._ends[task] = self._loop.time() + self._seconds
        try:
            return await awaitable
        except CancelledError:
            # Others may have cancelled it, too: then it ends, as with `asyncio.timeout`.
            if task in self._expired and task.cancelling() == 1:
                raise TimeoutError from None
            raise
        finally:
            self._ends.pop(task, None)
            if task in self._expired:
                self._expired.remove(task)
                task.uncancel()

    def _end_late_ones(self) -> None:
        self._loop.call_later(SECONDS_BETWEEN_LOOKS, self._end_late_ones)
        now = self._loop.time()
        for task in [task for task, end in self._ends.items() if end <= now]:
            del self._ends[task]
            self._expired.add(task)
            task.cancel()
