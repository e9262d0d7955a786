"""Requests that wait for their turn in a lane."""

from __future__ import annotations

import time
from asyncio import Future
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from granian.rsgi import HTTPProtocol  # type: ignore[attr-defined]

from config.http.request_state import STATE, RequestState, get_state
from config.server.answers import Answer, Environ
from config.server.draining import drain

# A request that was not begun by then is answered 503: its client has hardly any patience left.
SECONDS_TO_WAIT = 5.0


class Task:
    """A request that was received whole, on its way to its response.

    Attributes:
        caller: whom it counts for.
        received: when, by the monotonic clock.
        waiting: what its coroutine waits for; None where it does not wait.
        is_done: whether it was answered, or will never be.
        needs_slow_lane: whether it was begun in the fast lane, and left it.
        has_left: whether its client left before its turn came.
        channel: of the slow lane, over which it is run.
        watch: asyncio's task that waits for the client to leave.
    """

    __slots__ = (
        "caller",
        "channel",
        "environ",
        "has_left",
        "is_done",
        "needs_slow_lane",
        "protocol",
        "received",
        "waiting",
        "watch",
    )

    def __init__(self, environ: Environ, protocol: HTTPProtocol, caller: Hashable) -> None:
        self.environ = environ
        self.protocol = protocol
        self.caller = caller
        self.received = time.monotonic()
        self.waiting: Future[None] | None = None
        self.is_done = self.needs_slow_lane = self.has_left = False
        self.channel: Any = None
        self.watch: Future[None] | None = None

    def start_again(self, environ: Environ) -> None:
        """Makes it as it was before it was run; only for whom it was counted, and how, stays, and what it spent.

        Args:
            environ: the environment, as it was before.
        """
        self.environ["wsgi.input"].seek(0)
        before = get_state(self.environ)
        state = RequestState(
            attempt=before.attempt,
            refused=before.refused,
            sent_content_type=before.sent_content_type,
            user_id=before.user_id,
            quota_fields=before.quota_fields or None,
            counted=before.counted,
        )
        self.environ = environ | {STATE: state}
        self.received = time.monotonic()
        self.waiting, self.is_done = None, False

    def respond(self, response: Answer) -> None:
        self.protocol.response_bytes(*drain.mark(response))

    def finish(self) -> None:
        self.is_done = True
        self.wake()

    def begin(self) -> None:
        """It waits for its turn no more: from now on its client may leave."""
        if self.watch is not None:
            self.watch.cancel()
            self.watch = None

    def wake(self) -> None:
        """Has its coroutine go on."""
        self.begin()
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


class FairQueue:
    """First in, first out for each caller, and the callers in turn: who sends many requests waits for itself."""

    def __init__(self) -> None:
        # No queue is empty.
        self._queues: OrderedDict[Hashable, list[Task]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Task]:
        for queue in self._queues.values():
            yield from queue

    def put(self, task: Task) -> None:
        queue = self._queues.get(task.caller)
        if queue is None:
            self._queues[task.caller] = [task]
        else:
            queue.append(task)
        self._length += 1

    def take(self, count: int) -> list[Task]:
        """The next tasks, no more than `count`."""
        taken = []
        for _ in range(min(count, self._length)):
            caller, queue = self._queues.popitem(last=False)
            taken.append(queue.pop(0))
            if queue:
                self._queues[caller] = queue
        self._length -= len(taken)
        return taken

    def count(self, caller: Hashable) -> int:
        """How many tasks of a caller wait."""
        return len(self._queues.get(caller, ()))

    def count_before(self, caller: Hashable, may_go: Callable[[Hashable], bool]) -> int:
        """At most how many are taken before a task would be that is put in now.

        Args:
            caller: whose task it would be.
            may_go: whether tasks of a caller are taken at all.
        """
        turns = self.count(caller) + 1
        return sum(min(len(queue), turns) for other, queue in self._queues.items() if may_go(other))

    def take_newest(self, caller: Hashable) -> Task | None:
        """Takes out the last task of whom most of them are; None where the caller would have as many."""
        longest = max(self._queues.values(), key=len, default=[])
        if len(longest) <= self.count(caller) + 1:
            return None
        task = longest[-1]
        self.remove(task)
        return task

    def take_one(self, may_go: Callable[[Hashable], bool]) -> Task | None:
        """The next task of the callers that may have one; None where there is none."""
        caller = next(filter(may_go, self._queues), None)
        if caller is None:
            return None
        task = self._queues[caller][0]
        self.remove(task)
        if caller in self._queues:
            self._queues.move_to_end(caller)
        return task

    def remove(self, task: Task) -> None:
        queue = self._queues[task.caller]
        queue.remove(task)
        if not queue:
            del self._queues[task.caller]
        self._length -= 1
