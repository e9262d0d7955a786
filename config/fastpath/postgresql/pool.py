"""Connections that a request borrows for what takes several statements in a transaction, or long.

Replaces: a connection for each thread. Buys: a worker has a few connections, however many requests it has under way.
"""

from __future__ import annotations

import logging
import select
from collections import Counter, deque
from collections.abc import Callable, Hashable
from time import monotonic
from typing import Any, NamedTuple

from psycopg import OperationalError, abc
from psycopg.waiting import Ready, Wait

from config.fastpath.greenlets import RequestGreenlet, Scheduler, Wakeup, get_request_greenlet, wait
from config.fastpath.postgresql.prepared_statements import PreparedStatements

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 4
# Of those, what one caller may have, and what is likely to wait for the same lock.
MAX_SHARE = 2
MAX_SECONDS_TO_WAIT = 5.0
# PostgreSQL's own time-outs end a statement or a wait for a lock before that (config.settings), unless it is silent.
MAX_SECONDS_OF_SILENCE = 18.0
SECONDS_BETWEEN_LOOKS = 1.0


class _Waiting(NamedTuple):
    runner: RequestGreenlet
    keys: tuple[Hashable, ...]


class Pool:
    """The connections of a worker to a database.

    Args:
        scheduler: of the requests.
        open_connection: opens a connection; it is called in a thread.
        is_given_up: whether nothing is to be expected of the database any more.
    """

    def __init__(
        self, scheduler: Scheduler, open_connection: Callable[[], PreparedStatements], is_given_up: Callable[[], bool]
    ) -> None:
        self._scheduler, self._open, self._is_given_up = scheduler, open_connection, is_given_up
        self._idle: list[PreparedStatements] = []
        self._borrowed: dict[PreparedStatements, tuple[Hashable, ...]] = {}
        # How many places are taken: by what is borrowed, and by what is being opened; in all, and by key.
        self._taken = 0
        self._shares: Counter[Hashable] = Counter()
        self._waiting: deque[_Waiting] = deque()

    def borrow(self, *keys: Hashable) -> PreparedStatements:
        """A connection; call it in a greenlet, and give it back.

        Args:
            keys: of each of which MAX_SHARE connections are lent at most, beside that of the caller.

        Raises:
            OperationalError: the database is away, or all connections are in use for long.
        """
        runner: Any = get_request_greenlet()
        keys = (runner.caller, *keys)
        if not self._has_place(keys):
            self._wait_for_place(runner, keys)
        else:
            self._take_place(keys)
        try:
            connection = self._take_idle() or runner.scheduler.call_in_thread(self._open)
        except BaseException:
            self._free_place(keys)
            raise
        self._borrowed[connection] = keys
        raw: Any = connection.connection
        raw.wait = _LoopWait(raw, runner, self._is_given_up)
        return connection

    def give_back(self, connection: PreparedStatements) -> None:
        """Takes a connection back; one that is closed, or in a transaction, is not lent again."""
        keys = self._borrowed.pop(connection)
        raw: Any = connection.connection
        raw.wait = type(raw).wait.__get__(raw)
        if not raw.closed and raw.autocommit and connection.is_idle():
            self._idle.append(connection)
        else:
            raw.close()
        self._free_place(keys)

    def close(self) -> None:
        """Closes what is not borrowed."""
        while self._idle:
            self._idle.pop().connection.close()

    def _take_idle(self) -> PreparedStatements | None:
        while self._idle:
            connection = self._idle.pop()
            readable = select.poll()
            readable.register(connection.connection.fileno(), select.POLLIN)
            # Nothing is to be read but that the server has closed it.
            if not readable.poll(0):
                return connection
            connection.connection.close()
        return None

    # --- Places

    def _has_place(self, keys: tuple[Hashable, ...]) -> bool:
        return self._taken < MAX_CONNECTIONS and all(self._shares[key] < MAX_SHARE for key in keys if key is not None)

    def _take_place(self, keys: tuple[Hashable, ...]) -> None:
        self._taken += 1
        self._shares.update(key for key in keys if key is not None)

    def _wait_for_place(self, runner: RequestGreenlet, keys: tuple[Hashable, ...]) -> None:
        waiting = _Waiting(runner, keys)
        self._waiting.append(waiting)
        timer = self._scheduler.loop.call_later(MAX_SECONDS_TO_WAIT, self._refuse, waiting)
        try:
            wait()
        finally:
            timer.cancel()

    def _refuse(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            error = OperationalError("All connections of the pool are in use.")
            self._scheduler.resume([(waiting.runner, error)])

    def _free_place(self, keys: tuple[Hashable, ...]) -> None:
        self._taken -= 1
        for key in keys:
            if key is not None:
                self._shares[key] -= 1
                if not self._shares[key]:
                    del self._shares[key]
        for waiting in [*self._waiting]:
            if self._has_place(waiting.keys):
                self._waiting.remove(waiting)
                self._take_place(waiting.keys)
                self._scheduler.resume([(waiting.runner, None)])


class _LoopWait:
    """Takes the place of `psycopg.Connection.wait` while a connection is borrowed: the loop goes on meanwhile."""

    def __init__(self, connection: Any, runner: RequestGreenlet, is_given_up: Callable[[], bool]) -> None:
        self._connection, self._is_given_up = connection, is_given_up
        self._file, self._loop = connection.fileno(), runner.scheduler.loop

    def __call__(self, generator: abc.PQGen[Any], *arguments: Any, **options: Any) -> Any:
        try:
            state = next(generator)
            while True:
                state = generator.send(self._get_ready(state))
        except StopIteration as ended:
            return ended.value

    def _get_ready(self, state: Wait) -> Ready:
        began = monotonic()
        while True:
            ready = self._wait_a_moment(state)
            if ready is not None:
                return ready
            if monotonic() - began > MAX_SECONDS_OF_SILENCE or self._is_given_up():
                logger.error("The database is silent; a connection of the pool is closed.")
                self._connection.close()
                raise OperationalError("The database does not answer.")

    def _wait_a_moment(self, state: Wait) -> Ready | None:
        loop, wake = self._loop, Wakeup()
        timer = loop.call_later(SECONDS_BETWEEN_LOOKS, wake)
        if state & Wait.R:
            loop.add_reader(self._file, wake, Ready.R)
        if state & Wait.W:
            loop.add_writer(self._file, wake, Ready.W)
        try:
            ready: Ready | None = wait()
        finally:
            timer.cancel()
            loop.remove_reader(self._file)
            loop.remove_writer(self._file)
        return ready
