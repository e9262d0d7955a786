"""The fast lane: short requests in the thread of the event loop, those that arrived together in one batch.

While a batch runs, no other one begins, and the loop stands still, but for the turns that it gets where the batch takes
long (config.fastpath.loop_turns). So a request that turns out to be slow leaves the lane: where it is known beforehand
by `leave_fast_lane`, and else when PostgreSQL ends a statement after some tens of milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import cache, partial
from typing import TYPE_CHECKING

from django.conf import settings

from config.http.lanes import Lane
from config.server import metrics
from config.server.impatience import LOCK_MILLISECONDS
from config.server.queues import FairQueue, Task
from config.server.reception import Reception

if TYPE_CHECKING:
    from config.fastpath.loop_turns import LoopTurns

logger = logging.getLogger(__name__)

_batch_size = cache(metrics.BATCH_SIZE.labels)

# How many requests are run side by side at the most. They are answered at about the same time.
MAX_BATCH = 16
# What a batch may take of the processor, as far as those before it tell.
SECONDS_OF_A_BATCH = 0.010
# For so long a batch waits for requests of those whom the last one answered: their statements are sent together, and
# many of them are one. Nobody waits for who comes later than that, or for the first time.
SECONDS_TO_GATHER = 0.001
SECONDS_TO_RETURN = 0.002
# Of requests that wait beside a batch. A longer queue would only be waited for in vain.
MAX_WAITING = 512
# A burst is worked off. A queue that was never empty for so long is no burst: more arrives than can be answered. Then
# it is only as long as what is answered in so much time, and what is beyond it learns that at once.
SECONDS_OF_A_BURST = 0.5
SECONDS_OF_A_STANDING_QUEUE = 0.25
# Longer for what a proxy passes on, which is to refuse what would only wait (deploy/nginx.conf). What is refused here
# makes room there for the next one, which costs a worker more than a refusal by the proxy: a slow worker would spend
# more of its time on refusals than on answers.
SECONDS_OF_A_STANDING_QUEUE_BEHIND_A_PROXY = 1.0


class FastLane:
    """Runs tasks, the callers in turn.

    Args:
        loop: the event loop.
        run: runs a task.
        reception: by which tasks arrive.

    Attributes:
        turns: of the loop, in the middle of batches; none without the fast path.
        has_waited: whether a task of the present batch left the lane, and may have waited for as long as one may.
    """

    def __init__(self, loop: AbstractEventLoop, run: Callable[[Task], None], reception: Reception) -> None:
        self._loop = loop
        self._run = run
        self._reception = reception
        self.turns = _build_turns(loop, reception)
        self.queue = FairQueue()
        # Whether a batch runs, or will.
        self._is_busy = False
        self.has_waited = False
        # Of the processor, for a request, on average.
        self._seconds = 0.0
        # When the batch that runs began, by the monotonic clock; 0 between two. And for how long the loop had kept
        # batches from going on until then.
        self._began, self._away_before = 0.0, 0.0
        # When the last batch that left others waiting began, and with how many requests.
        self._left_at, self._left_by = 0.0, 0
        # How many requests are likely to come together; when the last batch ended; and what begins the next one.
        self._expected, self._ended = 0, 0.0
        self._gathering: TimerHandle | None = None
        # From one batch to the next, for a request, on average, while others wait.
        self._pace = 0.0
        # For so long no batch has taken all that waited.
        self._standing = 0.0

    async def run(self, task: Task) -> None:
        """Ends when the task was run, or will never be."""
        self.queue.put(task)
        # Those that arrived meanwhile are received too.
        await asyncio.sleep(0)
        if not task.is_done and not self._is_busy and not self._waits_for_more():
            # The first one does what there is for all; the others find it done.
            self._begin_when_received()
        if not task.is_done:
            task.waiting = self._loop.create_future()
            await task.waiting

    def _waits_for_more(self) -> bool:
        """Whether a batch begins a moment later, with those who are likely to come until then."""
        expected = min(self._expected, self._get_size())
        if len(self.queue) >= expected or time.monotonic() - self._ended > SECONDS_TO_RETURN:
            return False
        if self._gathering is None:
            self._gathering = self._loop.call_later(SECONDS_TO_GATHER, self._begin_without)
        return True

    def _begin_without(self) -> None:
        """Begins a batch without those who were waited for in vain, and are not expected any more."""
        self._expected = len(self.queue)
        self._begin_batch()

    def _begin_when_received(self) -> None:
        """Begins a batch with those, too, that have arrived and wait to be received."""
        if self._reception.is_waited_for:
            self._stop_gathering()
            self._is_busy = True
            self._reception.call_soon(self._begin_batch)
        else:
            self._begin_batch()

    def _stop_gathering(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None

    def _begin_batch(self) -> None:
        self._stop_gathering()
        tasks = self.queue.take(self._get_size())
        self._expected = max(self._expected, len(tasks))
        self._is_busy = bool(tasks)
        if tasks:
            run_beside_loop(partial(self._run_batch, tasks))

    def _run_batch(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.begin()
        self._began, self._away_before = time.monotonic(), self._get_seconds_away()
        self._note_pace(len(tasks))
        self.has_waited = False
        try:
            self._run_and_measure(tasks)
        finally:
            self._began, self._ended = 0.0, time.monotonic()
            for task in tasks:
                task.finish()
            self._is_busy = bool(self.queue)
            if self.queue:
                # After those that wait to be received, and what needs no lane.
                self._reception.call_soon(self._begin_batch)

    def _run_and_measure(self, tasks: Sequence[Task]) -> None:
        _batch_size(Lane.FAST.value).observe(len(tasks))
        began = self._get_processor_time()
        run_together([partial(self._run, task) for task in tasks], self.turns)
        taken = self._get_processor_time() - began
        self._seconds += 0.2 * (taken / len(tasks) - self._seconds)

    def _get_processor_time(self) -> float:
        """Of this thread, in seconds, without what the loop has taken in the middle of batches."""
        return time.thread_time() - self._get_seconds_of_turns()

    def _get_seconds_of_turns(self) -> float:
        return self.turns.seconds if self.turns else 0.0

    def _get_seconds_away(self) -> float:
        return self.turns.seconds_away if self.turns else 0.0

    def note_wait(self) -> None:
        """Notes that a task of the present batch leaves the lane: whether it may have waited for a lock."""
        # What the loop has taken was no wait.
        seconds = self.seconds_of_batch - (self._get_seconds_away() - self._away_before)
        self.has_waited |= seconds * 1000 > LOCK_MILLISECONDS

    def _note_pace(self, count: int) -> None:
        if self._left_by:
            # A database that stands still for a moment says nothing about how much arrives.
            seconds = min(self._began - self._left_at, SECONDS_OF_A_STANDING_QUEUE)
            self._pace += 0.2 * (seconds / self._left_by - self._pace)
            self._standing += seconds
        if self.queue:
            self._left_at, self._left_by = self._began, count
        else:
            self._left_by, self._standing = 0, 0.0

    def has_room(self, *, is_passed_on: bool = False) -> bool:
        """Whether one more request may wait.

        Args:
            is_passed_on: whether it says that it comes from a trusted proxy.
        """
        waiting = len(self.queue)
        if waiting >= MAX_WAITING:
            return False
        if waiting < MAX_BATCH or self._standing < SECONDS_OF_A_BURST:
            return True
        seconds = SECONDS_OF_A_STANDING_QUEUE_BEHIND_A_PROXY if is_passed_on else SECONDS_OF_A_STANDING_QUEUE
        return waiting * self._pace < seconds

    @property
    def is_running(self) -> bool:
        """Whether a batch was begun and has not ended: it waits for the database, or the loop has a turn."""
        return bool(self._began)

    @property
    def seconds_of_batch(self) -> float:
        """How long the present batch runs; 0 where there is none."""
        began = self._began
        return time.monotonic() - began if began else 0.0

    def _get_size(self) -> int:
        if self._seconds * MAX_BATCH <= SECONDS_OF_A_BATCH:
            return MAX_BATCH
        return max(1, int(SECONDS_OF_A_BATCH / self._seconds))


def run_beside_loop(run: Callable[[], None]) -> None:
    """Runs something that may leave the thread to its loop while it waits, and so may end later than this function."""
    if settings.FAST_PATH:
        from greenlet import greenlet

        greenlet(run).switch()
    else:
        run()


def _build_turns(loop: AbstractEventLoop, reception: Reception) -> LoopTurns | None:
    if not settings.FAST_PATH:
        return None
    from config.fastpath.loop_turns import LoopTurns

    return LoopTurns(loop, reception.call_soon)


def run_together(tasks: Sequence[Callable[[], None]], turns: LoopTurns | None = None) -> None:
    """Does together what uses the database; whatever it raises ends neither the loop nor the worker.

    For that time this thread has no running loop. Where there is one, Django refuses the database, and its connection
    would be one for each task instead of one for the thread (asgiref.local).

    Args:
        tasks: what is done.
        turns: what the loop gets in between.
    """
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        # A request that is not answered gets Granian's own 500.
        _run_tasks(tasks, turns)
    finally:
        asyncio._set_running_loop(loop)


def step_back() -> None:
    """Has the other tasks of a batch go on first: the caller begins what waits for the disk."""
    if settings.FAST_PATH:
        from config.fastpath import batching

        batching.step_back()


def _run_tasks(tasks: Sequence[Callable[[], None]], turns: LoopTurns | None) -> None:
    if settings.FAST_PATH:
        from config.fastpath import batching

        if turns is None:
            batching.run(tasks)
        else:
            turns.begin()
            batching.run(tasks, turns.give_way)
        return
    for task in tasks:
        try:
            Context().run(task)
        except BaseException:
            logger.critical("A task failed", exc_info=True)
