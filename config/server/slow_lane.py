"""The slow lane of a worker: requests that are declared slow run in a process beside it (slow_process.py)."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import Counter, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Any, NamedTuple

from config.http.lanes import MAX_SECONDS_TO_WAIT, Lane
from config.http.request_state import get_state
from config.server import metrics, slow_process
from config.server.answers import Answer, refuse_at_once
from config.server.draining import end_at_once
from config.server.requests import Environ, Receive, build_overload, wait_until_left

logger = logging.getLogger(__name__)

# Per worker, in addition to running ones. In a longer queue, requests would only wait in vain.
MAX_WAITING = 64
# How many requests of one caller it runs at once: it has threads left for others.
MAX_OF_A_CALLER = slow_process.THREADS // 2
SECONDS_BETWEEN_TELLS = 0.5


class _Waiting(NamedTuple):
    caller: Hashable
    since: float
    channel: Future[Any]


class ClientLeft(Exception):  # noqa: N818 - no error
    """Nobody waits for the answer any more, and the request was not begun."""


class SlowStream:
    """The body of a response in pieces, which are made when they are asked for.

    Args:
        lane: that runs it.
        channel: over which it comes.
        caller: whom it counts for.
    """

    def __init__(self, lane: SlowLane, channel: Any, caller: Hashable) -> None:
        self._lane, self._channel, self._caller = lane, channel, caller
        self._is_at_end = False

    async def fetch_piece(self) -> bytes | None:
        """The next piece; nothing at the end, and None for a stream that has failed.

        Raises:
            ConnectionError: the process has died.
        """
        # So it is where the process has died, too.
        self._is_at_end = True
        await slow_process.send(self._lane.loop, self._channel, slow_process.NEXT)
        piece: bytes | None = await slow_process.receive(self._lane.loop, self._channel)
        self._is_at_end = not piece
        return piece

    async def close(self) -> None:
        """Ends it, whatever it is doing."""
        if not self._is_at_end:
            with suppress(ConnectionError):
                await slow_process.send(self._lane.loop, self._channel, slow_process.STOP)
        self._lane.free_channel(self._channel, self._caller)


class SlowLane:
    """Runs requests in the process, as many at a time as it has channels: first come, first served.

    Args:
        loop: the event loop.
        process: the process.
    """

    def __init__(self, loop: AbstractEventLoop, process: slow_process.SlowProcess) -> None:
        self.loop = loop
        *self._free, self._monitoring = process.channels
        self._monitoring_lock = asyncio.Lock()
        self._timer: TimerHandle | None = None
        self._running: Counter[Hashable] = Counter()
        self._waiting: deque[_Waiting] = deque()
        self._has_died = False
        process.watch(loop, self._end_worker)

    async def run(
        self, environ: Environ, caller: Hashable, receive: Receive, *, is_monitoring: bool = False
    ) -> tuple[Answer, SlowStream | None]:
        """The response to a request: the whole of it and None, or its head and its body, which must be closed.

        Args:
            environ: of the request.
            caller: whom it counts for.
            receive: ASGI's; it tells when the client has left.
            is_monitoring: whether it does not wait for slow ones.

        Raises:
            DomainError: SERVICE_UNAVAILABLE, it was not begun.
            ClientLeft: it was not begun.
        """
        if is_monitoring:
            async with self._monitoring_lock:
                return await self._exchange(environ, caller, self._monitoring)
        return await self._exchange(environ, caller, await self._take_channel(caller, receive))

    async def _exchange(self, environ: Environ, caller: Hashable, channel: Any) -> tuple[Answer, SlowStream | None]:
        state = get_state(environ)
        try:
            body = environ.pop("wsgi.input").getvalue()
            await slow_process.send(self.loop, channel, (environ, body))
            outcome: slow_process.Outcome = await slow_process.receive(self.loop, channel)
        except Exception:
            logger.exception("A slow request was lost")
            self._end_worker()
            return refuse_at_once(environ, build_overload("The request may have been lost half-way.")), None
        state.user_id, state.send_at = outcome.user_id, outcome.send_at
        state.quota_fields = {} if outcome.is_counted else None
        if outcome.is_stream:
            return outcome.response, SlowStream(self, channel, caller)
        if channel is not self._monitoring:
            self.free_channel(channel, caller)
        return outcome.response, None

    async def _take_channel(self, caller: Hashable, receive: Receive) -> Any:
        if self._has_died or (len(self._waiting) >= MAX_WAITING and not (self._free and self._may_run(caller))):
            raise build_overload("Too many slow requests are waiting.")
        waiting = _Waiting(caller, time.monotonic(), self.loop.create_future())
        self._waiting.append(waiting)
        self._start_waiting()
        if not waiting.channel.done():
            await self._wait(waiting, receive)
        return waiting.channel.result()

    async def _wait(self, waiting: _Waiting, receive: Receive) -> None:
        leaving = asyncio.ensure_future(wait_until_left(receive))
        events = {waiting.channel, leaving}
        await asyncio.wait(events, timeout=MAX_SECONDS_TO_WAIT, return_when=asyncio.FIRST_COMPLETED)
        has_left = leaving.done()
        leaving.cancel()
        if waiting.channel.done():
            return
        self._waiting.remove(waiting)
        self._tell_length()
        if has_left:
            metrics.LANE_EVENTS.labels(Lane.SLOW.value, "dropped").inc()
            raise ClientLeft
        raise build_overload("The request has waited too long.")

    def _start_waiting(self) -> None:
        for waiting in [*self._waiting] if self._free else ():
            if self._free and self._may_run(waiting.caller):
                self._waiting.remove(waiting)
                self._running[waiting.caller] += 1
                waiting.channel.set_result(self._free.pop())
        self._tell_length()

    def free_channel(self, channel: Any, caller: Hashable) -> None:
        """Takes back a channel on which nothing is in transit."""
        self._free.append(channel)
        self._running -= Counter([caller])
        self._start_waiting()

    def _may_run(self, caller: Hashable) -> bool:
        return self._running[caller] < MAX_OF_A_CALLER

    def _tell_length(self) -> None:
        age = time.monotonic() - self._waiting[0].since if self._waiting else 0.0
        metrics.QUEUE_LENGTH.labels(Lane.SLOW.value).set(len(self._waiting))
        metrics.QUEUE_AGE.labels(Lane.SLOW.value).set(age)
        # Even if no request comes or ends, the oldest one grows older.
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(SECONDS_BETWEEN_TELLS, self._tell_length) if self._waiting else None

    def _end_worker(self) -> None:
        """A fork needs a process without threads, so the one that starts workers also starts the slow processes."""
        if self._has_died:
            return
        self._has_died = True
        while self._waiting:
            self._waiting.popleft().channel.set_exception(build_overload("The request was not begun."))
        end_at_once()
