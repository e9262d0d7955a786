"""The requests of a worker, from their reception to their response: in which lane, and whether at all.

The fast lane is the thread of the event loop. The slow lane is another process, so that neither its work nor the
interpreter's lock delays what is fast. What must be answered whatever waits is run beside both.
"""

from __future__ import annotations

import logging
import time
from asyncio import AbstractEventLoop, ensure_future
from collections import OrderedDict, deque
from collections.abc import Hashable
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from granian.rsgi import HTTPProtocol  # type: ignore[attr-defined]
from rest_framework.permissions import SAFE_METHODS

from config.http.client_address import is_passed_on
from config.http.errors import DomainError, ErrorCode
from config.http.lanes import Lane, NeedsSlowLane
from config.http.request_state import get_state
from config.postgresql.connections import cut_if_waiting, is_waiting
from config.postgresql.replicas import goes_on_without_primary
from config.server import metrics
from config.server.answers import RETRY_AFTER_SECONDS, Environ, answer, build_overload, choose_lane, refuse_at_once
from config.server.background import Repetition
from config.server.balance import Balance
from config.server.callers import Callers
from config.server.draining import drain
from config.server.fast_lane import FastLane, run_together, step_back
from config.server.impatience import refuse_to_connect, shorten_waits
from config.server.queues import SECONDS_TO_WAIT, Task
from config.server.readiness import probe
from config.server.reception import Reception
from config.server.slow_lane import SlowLane
from config.server.slow_process import SlowProcess

logger = logging.getLogger(__name__)

# From then on a waiting request is dropped when its client leaves. To watch all of them would cost more than many take.
SECONDS_TO_WATCH = 0.02
SECONDS_BETWEEN_SWEEPS = 0.02
# Of those whose clients have left, in a turn of the loop: hundreds may leave at once, and others wait for an answer.
MAX_DROPPED = 32
SECONDS_BETWEEN_LOOKS = 0.1
# After that a database connection of a batch is cut; that to the primary sooner, where reads go on without it.
MAX_SECONDS_OF_A_BATCH = 3.0
MAX_SECONDS_WITHOUT_PRIMARY = 1.0
# A batch that runs for so long waits for a COMMIT where the database answered others in the latter half of that: the
# time-outs of the fast lane end anything else. Reads that leave a database that is away would wait for it once more.
SECONDS_OF_A_STALL = 1.0
# For so long, what is like a request that has left the fast lane is run in the slow one from the beginning.
SECONDS_TO_STAY_SLOW = 1.0
_TOO_MANY_WAIT = {Lane.FAST: "Too many requests wait.", Lane.SLOW: "Too many slow requests wait."}


class Lanes:
    """Runs requests in their lanes.

    Args:
        django: Django's WSGI application.
        loop: the event loop.
        process: of the slow lane; without one, everything runs in the fast one, as long as it takes.
        reception: by which requests arrive.
        balance: is told of each request in the fast lane.
    """

    def __init__(
        self, django: Any, loop: AbstractEventLoop, process: SlowProcess | None, reception: Reception, balance: Balance
    ) -> None:
        self._django, self._loop, self._balance = django, loop, balance
        self._connections: list[Any] = []
        # Since when a connection was found waiting at each look.
        self._seen_waiting: dict[str, float] = {}
        self._fast = FastLane(loop, self._run_fast, reception)
        self._slow = SlowLane(loop, process) if process else None
        self._callers = Callers()
        self._in_flight: dict[Hashable, int] = {}
        self._slow_now: OrderedDict[Hashable, float] = OrderedDict()
        self._left: deque[tuple[Task, Lane]] = deque()
        if process:
            run_together([self._prepare_connection])
            Repetition(self._cut_hanging_connection, SECONDS_BETWEEN_LOOKS).start()
        self._queues = {Lane.FAST: self._fast.queue} | ({Lane.SLOW: self._slow.queue} if self._slow else {})
        self._was_waiting = dict.fromkeys(self._queues, False)
        self.sweep()

    def _prepare_connection(self) -> None:
        self._connections = [connections[alias] for alias in settings.DATABASES]
        for connection in self._connections:
            shorten_waits(connection)
            # Looked at by the fast path, when it connects (config.fastpath.postgresql.loop_waits).
            connection.turns = self._fast.turns
        refuse_to_connect(connections[DEFAULT_DB_ALIAS], lambda: probe.is_silent)

    def _cut_hanging_connection(self) -> None:
        """Ends what the fast lane waits for in vain. No time-out of PostgreSQL's holds where nothing comes from it."""
        now, seconds = time.monotonic(), self._fast.seconds_of_batch
        is_in_vain = seconds >= MAX_SECONDS_WITHOUT_PRIMARY and goes_on_without_primary()
        for each in self._connections:
            if not is_waiting(each):
                self._seen_waiting.pop(each.alias, None)
                continue
            # Of a batch that has waited long for one database, another one may just be answering.
            waited = now - self._seen_waiting.setdefault(each.alias, now)
            hangs = min(seconds, waited) >= MAX_SECONDS_OF_A_BATCH
            if (hangs or (is_in_vain and each.alias == DEFAULT_DB_ALIAS)) and cut_if_waiting(each):
                logger.error("The database %s is silent; the connection of the fast lane is cut.", each.alias)

    @property
    def waits_for_database(self) -> bool:
        """Whether the connection of this thread is in use."""
        return self._fast.is_running

    async def run(self, environ: Environ, protocol: HTTPProtocol) -> None:
        """Answers a request. A client that leaves meanwhile changes nothing where the request was begun."""
        lane = choose_lane(environ)
        get_state(environ).lane = lane.value
        if lane is Lane.NONE:
            run_together([lambda: protocol.response_bytes(*drain.mark(answer(self._django, environ)))])
            return
        caller, credential = self._callers.identify(environ)
        task = Task(environ, protocol, caller)
        if problem := _find_overload(environ) or _find_outage(environ) or self._find_excess(task, lane):
            self._refuse(task, problem, lane)
            return
        in_flight = self._in_flight
        in_flight[caller] = in_flight.get(caller, 0) + 1
        try:
            if self._slow is None or (
                lane is Lane.FAST and not self._is_slow_now(task) and not _waits_in_vain(environ)
            ):
                original = environ.copy()
                await self._run_in_fast_lane(task)
                if task.needs_slow_lane:
                    task.start_again(original)
                    await self._run_slow(task)
            else:
                await self._run_slow(task)
        finally:
            if in_flight[caller] == 1:
                del in_flight[caller]
            else:
                in_flight[caller] -= 1
            self._callers.learn(credential, get_state(task.environ))

    def _find_excess(self, task: Task, lane: Lane) -> DomainError | None:
        caller = task.caller
        limit = settings.MAX_IN_FLIGHT
        if limit and self._in_flight.get(caller, 0) >= limit:
            return _build_excess(limit)
        if (self._slow and lane is Lane.SLOW) or self._fast.has_room(is_passed_on=is_passed_on(task.environ)):
            return None
        return None if self._displace(caller, Lane.FAST) else build_overload(_TOO_MANY_WAIT[Lane.FAST])

    async def _run_in_fast_lane(self, task: Task) -> None:
        self._balance.begin()
        try:
            await self._fast.run(task)
        finally:
            self._balance.end()

    async def _run_slow(self, task: Task) -> None:
        slow: Any = self._slow
        get_state(task.environ).lane = Lane.SLOW.value
        if slow.begins_in_time(task.caller) and (slow.has_place(task.caller) or self._displace(task.caller, Lane.SLOW)):
            await slow.run(task)
        else:
            self._refuse(task, build_overload(_TOO_MANY_WAIT[Lane.SLOW]), Lane.SLOW)

    def _displace(self, caller: Hashable, lane: Lane) -> bool:
        """Refuses a waiting request of whom most wait: what others send is no reason to refuse a caller.

        Returns:
            Whether there was one. It may be the caller itself, of whom most wait.
        """
        displaced = self._queues[lane].take_newest(caller)
        if displaced is None:
            return False
        self._refuse(displaced, build_overload(_TOO_MANY_WAIT[lane]), lane)
        displaced.finish()
        return True

    def _refuse(self, task: Task, problem: DomainError, lane: Lane, event: str = "refused") -> None:
        metrics.LANE_EVENTS.labels(lane.value, event).inc()
        task.respond(refuse_at_once(task.environ, problem))

    def _run_fast(self, task: Task) -> None:
        if task.has_left:
            self._drop(task, Lane.FAST)
            return
        # It may have waited behind one that found out.
        if problem := _find_outage(task.environ):
            self._refuse(task, problem, Lane.FAST)
            return
        state = get_state(task.environ)
        if self._slow is not None:
            if _waits_in_vain(task.environ):
                task.needs_slow_lane = True
                return
            state.in_fast_lane, state.before_transaction = True, partial(self._begin_transaction, task)
        try:
            task.respond(answer(self._django, task.environ))
            # It may be long until the others of its batch are answered.
            task.finish()
        except NeedsSlowLane:
            task.needs_slow_lane = True
            self._fast.note_wait()
            metrics.LANE_EVENTS.labels(Lane.FAST.value, "left").inc()
            kind = _get_kind(task)
            self._slow_now.pop(kind, None)
            self._slow_now[kind] = time.monotonic() + SECONDS_TO_STAY_SLOW
        finally:
            # It leads back to the state.
            state.before_transaction = None

    def _is_slow_now(self, task: Task) -> bool:
        if not self._slow_now:
            return False
        while self._slow_now and next(iter(self._slow_now.values())) < task.received:
            self._slow_now.popitem(last=False)
        return _get_kind(task) in self._slow_now

    def _begin_transaction(self, task: Task) -> None:
        """Where one has waited, it did for all that were begun with it: they may wait for locks, too, each in turn.

        Raises:
            NeedsSlowLane: it is to be run there.
            DomainError: there is no primary any more.
        """
        step_back()
        if problem := _find_outage(task.environ):
            raise problem
        if self._fast.has_waited or self._is_slow_now(task):
            raise NeedsSlowLane

    # --- Those that wait

    def sweep(self) -> None:
        """Looks after requests that wait."""
        # First: whatever fails below, this goes on.
        self._loop.call_later(SECONDS_BETWEEN_SWEEPS, self.sweep)
        now = time.monotonic()
        self._relieve_reads()
        for lane, queue in self._queues.items():
            waiting = sorted(queue, key=lambda task: task.received) if queue else []
            for task in waiting:
                if now - task.received > SECONDS_TO_WAIT:
                    queue.remove(task)
                    self._refuse(task, build_overload("The request has waited too long."), lane, "expired")
                    task.finish()
                elif task.watch is None and now - task.received > SECONDS_TO_WATCH:
                    task.watch = ensure_future(self._watch_client(task, lane))
            if self._was_waiting[lane] or waiting:
                metrics.QUEUE_LENGTH.labels(lane.value).set(len(queue))
                metrics.QUEUE_AGE.labels(lane.value).set(now - waiting[0].received if waiting else 0.0)
            self._was_waiting[lane] = bool(waiting)

    async def _watch_client(self, task: Task, lane: Lane) -> None:
        await task.protocol.client_disconnect()
        # Its turn may have come in the same moment.
        if task.watch is not None:
            task.has_left = True
            self._left.append((task, lane))
            if len(self._left) == 1:
                self._loop.call_soon(self._drop_left)

    def _drop_left(self) -> None:
        for _ in range(min(MAX_DROPPED, len(self._left))):
            task, lane = self._left.popleft()
            # Otherwise it has been taken from the queue meanwhile.
            if task.watch is not None:
                self._queues[lane].remove(task)
                self._drop(task, lane)
        if self._left:
            self._loop.call_soon(self._drop_left)

    @staticmethod
    def _drop(task: Task, lane: Lane) -> None:
        metrics.LANE_EVENTS.labels(lane.value, "dropped").inc()
        task.finish()

    def _relieve_reads(self) -> None:
        """Has reads that wait behind a COMMIT, which the disk or a standby delays, run in the slow lane."""
        slow = self._slow
        if slow is None or slow.queue or self._fast.seconds_of_batch < SECONDS_OF_A_STALL:
            return
        if not probe.has_answered(SECONDS_OF_A_STALL / 2):
            return
        first: dict[Hashable, Task] = {}
        for task in self._fast.queue:
            if task.environ["REQUEST_METHOD"] in SAFE_METHODS and slow.may_run(task.caller):
                first.setdefault(task.caller, task)
        # No more than are begun at once: the slow lane refuses whom it has no room for.
        for task in [*first.values()][: slow.free]:
            self._fast.queue.remove(task)
            task.needs_slow_lane = True
            task.finish()


def _find_overload(environ: Environ) -> DomainError | None:
    """For which a request was refused while it was received."""
    problem = get_state(environ).refused
    if isinstance(problem, DomainError) and problem.code is ErrorCode.SERVICE_UNAVAILABLE:
        return problem
    return None


def _find_outage(environ: Environ) -> DomainError | None:
    """Nothing that writes waits for a primary that is known to be away."""
    if environ["REQUEST_METHOD"] in SAFE_METHODS or get_state(environ).refused or not goes_on_without_primary():
        return None
    return build_overload("The database takes no writes at the moment.")


def _waits_in_vain(environ: Environ) -> bool:
    """Whether a request would wait for a database that is silent. A replica checks an API key or a token then."""
    if not probe.is_silent:
        return False
    return not (goes_on_without_primary() and ("HTTP_X_API_KEY" in environ or "HTTP_AUTHORIZATION" in environ))


def _get_kind(task: Task) -> Hashable:
    return task.caller, task.environ["REQUEST_METHOD"], task.environ["PATH_INFO"]


def _build_excess(limit: int) -> DomainError:
    """draft-ietf-httpapi-ratelimit-headers-10: a policy of its own, in requests that are under way at the same time."""
    headers = {
        "Retry-After": str(RETRY_AFTER_SECONDS),
        "RateLimit-Policy": f'"inflight";q={limit};qu="concurrent-requests"',
        "RateLimit": '"inflight";r=0',
    }
    message = f"Only {limit} requests of one caller are run at the same time; wait for the answers."
    return DomainError(ErrorCode.RATE_LIMITED, message, headers=headers)
