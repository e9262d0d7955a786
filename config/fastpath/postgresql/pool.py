"""Connections that a request borrows for what takes several statements in a transaction, or long."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus

from config.fastpath.greenlets import Engine, RequestGreenlet, wait
from config.http.lanes import MAX_SECONDS_TO_WAIT
from config.postgresql.backend.base import has_news

MAX_CONNECTIONS = 4
# Of those, what one caller may have.
MAX_SHARE = MAX_CONNECTIONS // 2


class Pool:
    """The connections of a worker to a database.

    Args:
        engine: of the requests.
        open_connection: opens a connection; it is called in a thread.
    """

    def __init__(self, engine: Engine, open_connection: Callable[[], Connection[Any]]) -> None:
        self._engine, self._open = engine, open_connection
        self._idle: list[Connection[Any]] = []
        # By caller, what is borrowed or being opened.
        self._taken: Counter[Hashable] = Counter()
        self._waiting: deque[RequestGreenlet] = deque()

    def borrow(self, runner: RequestGreenlet) -> Connection[Any]:
        """A connection, to be given back; call it in the greenlet of the request.

        Raises:
            OperationalError: the database is unavailable, or all connections are in use for too long.
        """
        if self._has_place(runner.caller):
            self._taken[runner.caller] += 1
        else:
            self._wait_for_place(runner)
        try:
            return self._take_idle() or self._engine.call_in_thread(self._open)
        except BaseException:
            self._free_place(runner.caller)
            raise

    def give_back(self, connection: Connection[Any], runner: RequestGreenlet) -> None:
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

    def _take_idle(self) -> Connection[Any] | None:
        while self._idle:
            connection = self._idle.pop()
            if not has_news(connection):
                return connection
            connection.close()
        return None

    # --- Places

    def _has_place(self, caller: Hashable) -> bool:
        return self._taken.total() < MAX_CONNECTIONS and self._taken[caller] < MAX_SHARE

    def _wait_for_place(self, runner: RequestGreenlet) -> None:
        self._waiting.append(runner)
        timer = self._engine.loop.call_later(MAX_SECONDS_TO_WAIT, partial(self._refuse, runner))
        try:
            wait()
        finally:
            timer.cancel()

    def _refuse(self, runner: RequestGreenlet) -> None:
        if runner in self._waiting:
            self._waiting.remove(runner)
            self._engine.resume([(runner, OperationalError("All connections of the pool are in use."))])

    def _free_place(self, caller: Hashable) -> None:
        self._taken -= Counter([caller])
        for runner in [*self._waiting]:
            if self._has_place(runner.caller):
                self._waiting.remove(runner)
                self._taken[runner.caller] += 1
                self._engine.resume([(runner, None)])
