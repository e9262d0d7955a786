"""The connection that the requests of a worker share: a pipeline, and for what takes long a pool."""

from __future__ import annotations

from collections.abc import Hashable
from time import perf_counter
from typing import Any

from psycopg import Error

from config.fastpath.greenlets import get_request_greenlet
from config.fastpath.postgresql.base import DatabaseWrapper, release_connections
from config.fastpath.postgresql.batches import Batch, Rows, Statement
from config.fastpath.postgresql.pipeline import Outcome, Pipeline
from config.fastpath.postgresql.pool import Pool
from config.http.request_state import get_spent
from config.postgresql.transactions import is_refused_by_standby

# For so long, a statement that has exceeded the time-outs of the pipeline is run by the pool from the beginning.
SECONDS_TO_STAY_SLOW = 1.0


class SharedConnection(DatabaseWrapper):
    """Runs statements outside of transactions; it is never connected itself.

    Attributes:
        pipeline: of the database, and its `connection_pool`.
    """

    pipeline: Pipeline
    connection_pool: Pool

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Of statements that have taken long, until when they are run by the pool.
        self._slow: dict[Hashable, float] = {}

    def run(self, *statements: Statement, shared_transaction: bool = False, is_durable: bool = False) -> list[Rows]:
        batch = Batch(statements, shared_transaction)
        with self.wrap_database_errors:
            if not self._is_slow(batch):
                for attempt in (batch, batch._replace(is_alone=True)):
                    outcome = self.pipeline.submit(attempt, is_durable=is_durable)
                    _note(batch, outcome)
                    if outcome.result is not None:
                        return _unwrap(outcome.result)
                    if outcome.is_slow:
                        break
                self._note_slow(batch)
            outcome = self._run_in_pool(batch)
            _note(batch, outcome)
            return _unwrap(outcome.result)

    def _run_in_pool(self, batch: Batch) -> Outcome:
        """Runs a batch with the time-outs of the settings, while others wait for no more than its place in the pool."""
        runner: Any = get_request_greenlet()
        # Who waits for a connection holds none.
        release_connections(runner)
        connection = self.connection_pool.borrow(_get_key(batch))
        began = perf_counter()
        result: list[Rows] | Exception
        try:
            result = connection.run(*batch.statements)
        except Error as error:
            result = error
            if is_refused_by_standby(error):
                connection.connection.close()
        finally:
            self.connection_pool.give_back(connection)
        return Outcome(result, began, perf_counter() - began)

    def _is_slow(self, batch: Batch) -> bool:
        if not self._slow:
            return False
        now = self.pipeline.scheduler.loop.time()
        self._slow = {key: until for key, until in self._slow.items() if until > now}
        return bool(self._slow) and _get_key(batch) in self._slow

    def _note_slow(self, batch: Batch) -> None:
        self._slow[_get_key(batch)] = self.pipeline.scheduler.loop.time() + SECONDS_TO_STAY_SLOW


def _note(batch: Batch, outcome: Outcome) -> None:
    spent = get_spent()
    if isinstance(outcome.result, Exception):
        spent.fail(outcome.result)
    spent.add(batch.statements, outcome.began, outcome.seconds)


def _unwrap(result: list[Rows] | Exception | None) -> list[Rows]:
    if isinstance(result, Exception):
        # Of several requests that get the same one, none shall find the frames of another in it.
        raise result.with_traceback(None)
    return result or []


def _get_key(batch: Batch) -> Hashable:
    """What is alike in statements that are likely to wait for the same lock."""
    return hash(repr(batch.statements))
