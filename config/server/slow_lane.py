"""The slow lane of a worker: what would delay the fast one is run by a process beside it (slow_process.py)."""

from __future__ import annotations

import logging
import time
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Hashable

from config.http.lanes import Lane
from config.http.request_state import get_state
from config.server import metrics, slow_process
from config.server.answers import Answer, build_overload, refuse_at_once
from config.server.client_streams import ClientStream
from config.server.draining import drain, end_at_once
from config.server.queues import SECONDS_TO_WAIT, FairQueue, Task

logger = logging.getLogger(__name__)

# Of a worker, beside those that run. A longer queue would only be waited for in vain.
MAX_WAITING = 64
# How many requests of one caller it runs at once: it has threads left for others.
MAX_OF_A_CALLER = slow_process.THREADS // 2
# All callers of whom it runs fewer.
_OTHERS = object()


class SlowLane:
    """Has tasks run by the process of the slow lane, as many as it has channels, the callers in turn.

    Args:
        loop: the event loop.
        process: the process.
    """

    def __init__(self, loop: AbstractEventLoop, process: slow_process.SlowProcess) -> None:
        self._loop = loop
        self._free = list(process.channels)
        self._running: Counter[Hashable] = Counter()
        self._has_died = False
        # For which a request runs while others wait, smoothed: one of a caller of whom as many run as may, whose next
        # one waits for it, and one of _OTHERS.
        self._seconds: dict[Hashable, float] = {}
        self._streams: set[ClientStream] = set()
        self.queue = FairQueue()
        process.watch(loop, self._end_worker)

    @property
    def free(self) -> int:
        """How many requests it would begin at once."""
        return len(self._free)

    def has_place(self, caller: Hashable) -> bool:
        """Whether one more request of a caller may wait, or would not have to."""
        return len(self.queue) < MAX_WAITING or (bool(self._free) and self.may_run(caller))

    def begins_in_time(self, caller: Hashable) -> bool:
        """Whether one more request of a caller would be begun in time if those before it took as long as the last."""
        if self._has_died:
            return False
        if not self.may_run(caller):
            # What others run is no reason to refuse it.
            turns = self.queue.count(caller) / MAX_OF_A_CALLER
            return turns * self._seconds.get(caller, 0.0) < SECONDS_TO_WAIT
        if self._free:
            return True
        channels = sum(running for other, running in self._running.items() if self.may_run(other))
        if not channels:
            # Nobody knows when one of those ends, and this caller's turn comes.
            return True
        turns = self.queue.count_before(caller, self.may_run) / channels
        return turns * self._seconds.get(_OTHERS, 0.0) < SECONDS_TO_WAIT

    async def run(self, task: Task) -> None:
        """Ends when the task was run, or will never be."""
        self.queue.put(task)
        self._start_waiting()
        if task.channel is None:
            task.waiting = self._loop.create_future()
            await task.waiting
        if task.is_done:
            return
        began = time.monotonic()
        try:
            outcome = await slow_process.send(self._loop, task.channel, task.environ)
        except Exception:
            logger.exception("A slow request was lost")
            task.respond(refuse_at_once(task.environ, build_overload("The request may have been lost half-way.")))
            self._end_worker()
            return
        state = get_state(task.environ)
        state.user_id = outcome.user_id
        if outcome.is_counted:
            state.quota_fields = {}
        if outcome.is_stream and not await self._stream(task, outcome.response):
            return
        # A stream lasts as long as its client takes.
        if not outcome.is_stream:
            self._learn(task.caller, time.monotonic() - began)
        self._free.append(task.channel)
        self._running[task.caller] -= 1
        if not self._running[task.caller]:
            del self._running[task.caller]
            self._seconds.pop(task.caller, None)
        self._start_waiting()
        if not outcome.is_stream:
            task.respond(outcome.response)

    async def _stream(self, task: Task, beginning: Answer) -> bool:
        """Ends with the stream. Returns whether the process is alive."""
        stream = ClientStream(task.environ)
        self._streams.add(stream)
        is_whole = False
        try:
            try:
                pipe = await stream.begin(task.protocol, drain.mark(beginning))
            except Exception:
                logger.exception("A stream could not be begun")
                pipe = None
            is_whole = await slow_process.send_pipe(self._loop, task.channel, pipe)
        except Exception:
            logger.exception("A stream was lost")
            self._end_worker()
            return False
        finally:
            self._streams.discard(stream)
            if is_whole:
                stream.finish()
            else:
                stream.cut()
        return True

    def _start_waiting(self) -> None:
        while self._free and (task := self.queue.take_one(self.may_run)):
            task.channel = self._free.pop()
            self._running[task.caller] += 1
            task.wake()

    def _learn(self, caller: Hashable, seconds: float) -> None:
        """Notes how long a request of a caller ran, which without a queue says nothing of those that will wait."""
        if not self.queue:
            self._seconds.clear()
            return
        group = _OTHERS if self.may_run(caller) else caller
        known = self._seconds.get(group, seconds)
        self._seconds[group] = known + 0.2 * (seconds - known)

    def may_run(self, caller: Hashable) -> bool:
        """Whether it would begin one more request of a caller."""
        return self._running[caller] < MAX_OF_A_CALLER

    def _end_worker(self) -> None:
        """A fork needs a process without threads: the one that starts workers also starts those beside them."""
        if self._has_died:
            return
        self._has_died = True
        # First of all: Granian waits, and nothing beside it runs, until each pipe that it reads has an end.
        for stream in self._streams:
            stream.cut()
        for task in list(self.queue):
            self.queue.remove(task)
            metrics.LANE_EVENTS.labels(Lane.SLOW.value, "refused").inc()
            task.respond(refuse_at_once(task.environ, build_overload("The request was not begun.")))
            task.finish()
        end_at_once()
