"""Connections that a request borrows for what takes several statements in a transaction, or long."""

from __future__ import annotations

import select
from collections import Counter, deque
from collections.abc import Callable, Hashable
from functools import partial

from psycopg import OperationalError
from psycopg.pq import TransactionStatus

from config.fastpath.greenlets import RequestGreenlet, Scheduler, wait
from config.fastpath.postgresql.base import LoopConnection
from config.http.lanes import MAX_SECONDS_TO_WAIT

MAX_CONNECTIONS = 4
# Of those, what one caller may have.
MAX_SHARE = MAX_CONNECTIONS // 2


class Pool:
    """The connections of a worker to a database.

    Args:
        scheduler: of the requests.
        open_connection: opens a connection; it is called in a thread.
    """

    def __init__(self, scheduler: Scheduler, open_connection: Callable[[], LoopConnection]) -> None:
        self._scheduler, self._open = scheduler, open_connection
        self._idle: list[LoopConnection] = []
        # By caller, what is borrowed or being opened.
        self._taken: Counter[Hashable] = Counter()
        self._waiting: deque[RequestGreenlet] = deque()

    def borrow(self, runner: RequestGreenlet) -> LoopConnection:
        """A connection, to be given back; call it in the greenlet of the request.

        Raises:
            OperationalError: the database is unavailable, or all connections are in use for too long.
        """
        if self._has_place(runner.caller):
            self._taken[runner.caller] += 1
        else:
            self._wait_for_place(runner)
        try:
            return self._take_idle() or self._scheduler.call_in_thread(self._open)
        except BaseException:
            self._free_place(runner.caller)
            raise

    def give_back(self, connection: LoopConnection, runner: RequestGreenlet) -> None:
        """Takes a connection back; one that is closed, or in a transaction, is not lent again."""
        if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        self._free_place(runner.caller)

    def close(self) -> None:
        """Closes what is not borrowed."""
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> LoopConnection | None:
        while self._idle:
            connection = self._idle.pop()
            readable = select.poll()
            readable.register(connection.fileno(), select.POLLIN)
            # Nothing is to be read but that the server has closed it.
            if not readable.poll(0):
                return connection
            connection.close()
        return None

    # --- Places

    def _has_place(self, caller: Hashable) -> bool:
        return self._taken.total() < MAX_CONNECTIONS and self._taken[caller] < MAX_SHARE

    def _wait_for_place(self, runner: RequestGreenlet) -> None:
        self._waiting.append(runner)
        timer = self._scheduler.loop.call_later(MAX_SECONDS_TO_WAIT, partial(self._refuse, runner))
        try:
            wait()
        finally:
            timer.cancel()

    def _refuse(self, runner: RequestGreenlet) -> None:
        if runner in self._waiting:
            self._waiting.remove(runner)
            self._scheduler.resume([(runner, OperationalError("All connections of the pool are in use."))])

    def _free_place(self, caller: Hashable) -> None:
        self._taken -= Counter([caller])
        for runner in [*self._waiting]:
            if self._has_place(runner.caller):
                self._waiting.remove(runner)
                self._taken[runner.caller] += 1
                self._scheduler.resume([(runner, None)])
