"""What the requests of a worker share: the scheduler of their greenlets, and the connections to each database."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import Error

from config.fastpath.greenlets import Scheduler, get_request_greenlet
from config.fastpath.postgresql.base import DatabaseWrapper, open_connection, release_connections
from config.fastpath.postgresql.pipeline import TIME_OUTS, Pipeline
from config.fastpath.postgresql.pool import Pool
from config.fastpath.postgresql.statements import Rows, Statement
from config.http.request_state import get_spent


class Engine(Scheduler):
    """Runs functions in greenlets, whose statements are sent together.

    Args:
        loop: the event loop, in whose thread this is made and used.
        is_given_up: whether nothing is to be expected any more of the database with an alias.
    """

    def __init__(self, loop: AbstractEventLoop, is_given_up: Callable[[str], bool]) -> None:
        super().__init__(loop, release_connections)
        self.is_given_up = is_given_up
        self._shared = {alias: SharedConnection(alias, self) for alias in connections}

    def close(self) -> None:
        """Closes all connections that no function uses, and ends the thread."""
        for shared in self._shared.values():
            shared.pipeline.close()
            shared.connection_pool.close()
        super().close()

    def get_shared(self, alias: str = DEFAULT_DB_ALIAS) -> SharedConnection:
        """The connection that is shared to a database."""
        return self._shared[alias]


class SharedConnection(DatabaseWrapper):
    """Runs statements outside of transactions; it is never connected itself.

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
        is_given_up = partial(engine.is_given_up, alias)
        self.pipeline = Pipeline(engine, partial(connect, **TIME_OUTS), is_given_up)
        self.connection_pool = Pool(engine, connect)

    def run(
        self, sql: str, values: Sequence[object], *, shared_transaction: bool = False, is_durable: bool = False
    ) -> Rows:
        try:
            for is_alone in (False, True):
                statement = Statement(sql, values, shared_transaction, is_alone)
                result, seconds, is_slow = self.pipeline.submit(statement, is_durable=is_durable)
                get_spent().add(sql, seconds, result if isinstance(result, Exception) else None)
                if isinstance(result, Exception):
                    # Of several requests that get the same one, none shall find the frames of another in it.
                    raise result.with_traceback(None)
                if result is not None:
                    return result
                if is_slow:
                    break
        except Error:
            with self.wrap_database_errors:
                raise
        return self._run_in_pool(sql, values)

    def _run_in_pool(self, sql: str, values: Sequence[object]) -> Rows:
        """Runs a statement with the time-outs of the settings, while others wait for no more than its place."""
        runner: Any = get_request_greenlet()
        own = cast(DatabaseWrapper, connections[self.alias])
        # Who waits for a connection holds none.
        release_connections(runner)
        try:
            return own.run_by_cursor(sql, values)
        finally:
            release_connections(runner)
