"""Django's PostgreSQL backend for requests of an event loop, which wait in a greenlet.

Replaces: a connection for each thread. Buys: a worker has a few connections, however many requests it has under way.
A statement outside of a transaction goes to the connection that all requests share, a pipeline. A transaction borrows
one of a pool.
"""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

import psycopg
from django.db import Error, connections
from django.db.backends.postgresql.base import ServerBindingCursor
from psycopg import OperationalError, abc
from psycopg.types.numeric import Int2, Int2Dumper, Int4, Int4Dumper, Int8, Int8Dumper, IntDumper
from psycopg.waiting import Ready, Wait

from config.fastpath.greenlets import (
    Engine,
    RequestGreenlet,
    Wakeup,
    get_request_greenlet,
    release_connections,
    wait,
)
from config.fastpath.postgresql.pipeline import TIME_OUTS, Pipeline
from config.fastpath.postgresql.pool import Pool
from config.fastpath.postgresql.statements import GivenRows, GivenRowsDumper, Rows, Statement
from config.http.request_state import get_spent
from config.postgresql.backend import base
from config.postgresql.connections import SECONDS_BETWEEN_LOOKS
from config.postgresql.database_url import with_parameters
from config.postgresql.transactions import is_refused_by_standby

# PostgreSQL's own time-outs end a statement or a wait for a lock before that (config.settings), unless it is silent.
MAX_SECONDS_TO_WAIT = 18.0
# An integer that does not fit its column is refused as text. In binary, psycopg would cut it off to one that fits. One
# way for plain integers and for those that are marked as a column's: both are prepared under the same types.
_INTEGERS = {int: IntDumper, Int2: Int2Dumper, Int4: Int4Dumper, Int8: Int8Dumper}


class LoopConnection(psycopg.Connection[Any]):
    """psycopg's connection. A request that waits for it leaves its greenlet, and the loop continues.

    Attributes:
        alias: of its database.
        set_local: the statement that each transaction begins with; empty where there is none.
    """

    alias: str
    set_local: str

    def wait(self, gen: abc.PQGen[Any], *arguments: Any, **options: Any) -> Any:
        runner = get_request_greenlet()
        if runner is None:
            return super().wait(gen, *arguments, **options)
        try:
            state = next(gen)
            while True:
                state = gen.send(self._get_ready(state, runner))
        except StopIteration as ended:
            return ended.value

    def _get_ready(self, state: Wait, runner: RequestGreenlet) -> Ready:
        deadline = perf_counter() + MAX_SECONDS_TO_WAIT
        while (ready := self._wait_a_moment(state, runner.engine.loop)) is None:
            if perf_counter() > deadline or runner.engine.is_given_up(self.alias):
                self.close()
                raise OperationalError("The database does not answer.")
        return ready

    def _wait_a_moment(self, state: Wait, loop: Any) -> Ready | None:
        file, wake = self.fileno(), Wakeup()
        timer = loop.call_later(SECONDS_BETWEEN_LOOKS, wake)
        if state & Wait.R:
            loop.add_reader(file, wake, Ready.R)
        if state & Wait.W:
            loop.add_writer(file, wake, Ready.W)
        try:
            ready: Ready | None = wait()
        finally:
            timer.cancel()
            loop.remove_reader(file)
            loop.remove_writer(file)
        return ready


class _Connections:
    """Takes the place of asgiref's Local in `django.db.connections`: a request in a greenlet has its own ones."""

    def __init__(self) -> None:
        self.__dict__["_threads"] = threading.local()

    def _get_holder(self) -> Any:
        runner = get_request_greenlet()
        return self._threads if runner is None else runner.connections

    def __getattr__(self, alias: str) -> Any:
        return getattr(self._get_holder(), alias)

    def __setattr__(self, alias: str, connection: Any) -> None:
        setattr(self._get_holder(), alias, connection)

    def __delattr__(self, alias: str) -> None:
        delattr(self._get_holder(), alias)


def get_connection(alias: str) -> DatabaseWrapper:
    """The connection of the caller to a database: of a request outside of a transaction, the one that all share."""
    runner = get_request_greenlet()
    if runner is None:
        return cast(DatabaseWrapper, connections[alias])
    own: DatabaseWrapper | None = getattr(runner.connections, alias, None)
    return own if own is not None and own.in_atomic_block else runner.engine.shared[alias]


def open_connection(alias: str, **parameters: str) -> LoopConnection:
    """Opens a connection that belongs to no thread.

    Args:
        alias: of the database.
        parameters: of PostgreSQL, in addition to the settings'.

    Raises:
        django.db.Error: the database is unavailable, or refuses.
    """
    wrapper: Any = connections.create_connection(alias)
    wrapper.settings_dict = with_parameters(wrapper.settings_dict, **parameters)
    wrapper.connect()
    opened: LoopConnection = wrapper.connection
    wrapper.connection = None
    return opened


class DatabaseWrapper(base.DatabaseWrapper):
    Database = SimpleNamespace(**(vars(psycopg) | {"connect": LoopConnection.connect}))  # type: ignore[assignment]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        runner = get_request_greenlet()
        if runner is not None:
            return runner.engine.shared[self.alias].connection_pool.borrow(runner)
        made = super().get_new_connection(conn_params)
        made.alias, made.set_local = self.alias, self.settings_dict.get("SET_LOCAL", "")
        for kind, as_text in _INTEGERS.items():
            made.adapters.register_dumper(kind, as_text)
        made.adapters.register_dumper(GivenRows, GivenRowsDumper)
        return made

    def _close(self) -> None:
        """Django's; what was borrowed is given back. Whoever closes a connection wants another one."""
        if self.connection is not None:
            self.connection.close()
            self._give_back()

    def release(self) -> None:
        """Gives back what the request has borrowed, unless it is in a transaction."""
        if self.connection is not None and not self.in_atomic_block:
            if self.close_at is not None:
                # Its server takes no writes any more (config.postgresql.statements).
                self.connection.close()
            self._give_back()
            self.connection = None

    def _give_back(self) -> None:
        runner = get_request_greenlet()
        if runner is not None:
            runner.engine.shared[self.alias].connection_pool.give_back(self.connection, runner)

    def run(
        self, sql: str, values: Sequence[object], *, shared_transaction: bool = False, is_durable: bool = False
    ) -> Rows:
        """The rows of a statement; none where it has no result.

        Args:
            sql: with `%s` for each value.
            values: of the statement.
            shared_transaction: whether other requests may share the transaction: nothing is locked.
            is_durable: whether the COMMIT waits for the disk.

        Raises:
            django.db.Error: as a cursor raises it.
        """
        runner = get_request_greenlet()
        if self.in_atomic_block:
            return self.run_by_cursor(sql, values)
        if runner is None:
            return self._run_in_thread(sql, values)
        shared: SharedConnection = runner.engine.shared[self.alias]
        return shared.run(sql, values, shared_transaction=shared_transaction, is_durable=is_durable)

    def _run_in_thread(self, sql: str, values: Sequence[object]) -> Rows:
        try:
            return self.run_by_cursor(sql, values)
        except Error as error:
            is_standby = is_refused_by_standby(error.__cause__)
            if is_standby or self.connection is None or self.connection.closed:
                self.close()
            if not is_standby:
                raise
        # A standby has done nothing of it. The new connection may lead to the primary.
        return self.run_by_cursor(sql, values)

    def run_by_cursor(self, sql: str, values: Sequence[object]) -> Rows:
        """The rows of a statement, by a connection of the caller's own."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor = self._prepare_cursor(ServerBindingCursor(self.connection))  # type: ignore[attr-defined, call-arg]  # the stubs leave it out
        with cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


class SharedConnection(DatabaseWrapper):
    """Runs the statements of all requests outside of transactions; it is never connected itself.

    Args:
        alias: of the database.
        engine: whose requests share it.

    Attributes:
        pipeline: of the database.
        connection_pool: for what takes several statements, or long.
    """

    def __init__(self, alias: str, engine: Engine) -> None:
        settings: Any = connections.settings[alias]
        super().__init__(settings, alias)
        connect = partial(open_connection, alias)
        self.pipeline = Pipeline(engine, partial(connect, **TIME_OUTS), partial(engine.is_given_up, alias))
        self.connection_pool = Pool(engine, connect)

    def close(self) -> None:
        self.pipeline.close()
        self.connection_pool.close()

    def run(
        self, sql: str, values: Sequence[object], *, shared_transaction: bool = False, is_durable: bool = False
    ) -> Rows:
        try:
            for is_alone in (False, True):
                statement = Statement(sql, values, shared_transaction, is_alone)
                result, seconds, is_slow = self.pipeline.submit(statement, is_durable=is_durable)
                get_spent().add(sql, seconds, result if isinstance(result, Exception) else None)
                if isinstance(result, Exception):
                    # Several requests may get the same one: none may find the frames of another in it.
                    raise result.with_traceback(None)
                if result is not None:
                    return result
                if is_slow:
                    break
        except psycopg.Error:
            with self.wrap_database_errors:
                raise
        return self._run_in_pool(sql, values)

    def _run_in_pool(self, sql: str, values: Sequence[object]) -> Rows:
        """Runs a statement with the time-outs of the settings, while others wait for no more than its place."""
        # Who waits for a connection holds none.
        release_connections()
        try:
            return cast(DatabaseWrapper, connections[self.alias]).run_by_cursor(sql, values)
        finally:
            release_connections()


def start_engine(loop: AbstractEventLoop, is_given_up: Callable[[str], bool]) -> Engine:
    """An engine of a loop, whose requests share a connection to each database (see Engine)."""
    engine = Engine(loop, is_given_up)
    engine.shared = {alias: SharedConnection(alias, engine) for alias in connections}
    return engine


# Django imports this module to make its first connection.
connections._connections = _Connections()  # type: ignore[attr-defined]  # the stubs leave it out
