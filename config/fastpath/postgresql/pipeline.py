"""The statements of all requests of a worker to one database, sent together.

Replaces: a connection for each request. Buys: statements that are submitted while an answer is on its way are sent in
one flush, share transactions and their COMMITs, and many of them are one statement; nothing blocks the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from psycopg import Connection, Error, OperationalError
from psycopg.errors import LockNotAvailable, QueryCanceled, error_from_result
from psycopg.pq import ConnStatus, ExecStatus

from config.fastpath.greenlets import Engine, RequestGreenlet, get_request_greenlet, wait
from config.fastpath.postgresql.statements import (
    OUTDATED,
    Group,
    PreparedStatements,
    Rows,
    Statement,
    load_unit,
)
from config.postgresql.connections import MAX_SECONDS_OF_SILENCE, SECONDS_BETWEEN_LOOKS
from config.postgresql.transactions import is_refused_by_standby

logger = logging.getLogger(__name__)

# How long a flush waits, at most, for as many statements as were recently under way together. It waits only if the last
# flush was answered less than twice this time ago: its requests are about to send their next statements. Without it,
# flushes have one or two statements, and a read costs a fifth more.
SECONDS_TO_GATHER = 0.002
# After that, what is submitted takes the other connection: a COMMIT may wait for the disk, a statement for a lock.
SECONDS_TO_BE_LATE = 0.010
CONNECTIONS = 2
# For a statement in a flush. Most take less than a millisecond. One that takes longer runs in the pool, where it delays
# nobody. A write may wait for another one's COMMIT, which takes a few milliseconds.
TIME_OUTS = {"lock_timeout": "25ms", "statement_timeout": "75ms"}

_Submitted = tuple[RequestGreenlet, Statement]


class Outcome(NamedTuple):
    """The outcome of a statement.

    Attributes:
        result: its rows, or its error; None where nothing of it was done, and it is to be run again by itself: it has
            met the error of another one, a time-out, or a server that does not know it.
        seconds: that its flush took.
        is_slow: whether it has exceeded a time-out, and not one of those that it was made one with.
    """

    result: Rows | Exception | None
    seconds: float
    is_slow: bool


class Pipeline:
    """The pipeline of a database.

    Args:
        engine: of the requests.
        open_connection: opens a connection; it is called in a thread.
        is_given_up: whether nothing is to be expected of the database any more.
    """

    def __init__(
        self, engine: Engine, open_connection: Callable[[], Connection[Any]], is_given_up: Callable[[], bool]
    ) -> None:
        self.engine, self.is_given_up = engine, is_given_up
        self._gathered: list[_Submitted] = []
        # What writes to the WAL is sent apart: its COMMIT waits for the disk, and reads do not wait with it.
        self._durable: list[_Submitted] = []
        self._gathering: TimerHandle | None = None
        self._is_due = self._was_passed_over = False
        # How many statements were under way together, one less for each wait in vain; and when those of the last flush
        # had been taken up by their requests, which takes longer the more there are.
        self._expected, self._ended = 0, 0.0
        self._connections = [_PipelineConnection(self, open_connection) for _ in range(CONNECTIONS)]
        self._present = self._connections[0]

    def close(self) -> None:
        """Closes the connections."""
        for each in self._connections:
            each.close()

    def submit(self, statement: Statement, *, is_durable: bool = False) -> Outcome:
        """Sends a statement together with those of other requests; call it in a greenlet.

        Args:
            statement: the statement.
            is_durable: whether its COMMIT waits for the disk.

        Raises:
            OperationalError: the database is unavailable.
        """
        runner: Any = get_request_greenlet()
        if self._present.failure is not None and (failure := self._find_failure()):
            raise OperationalError(str(failure))
        (self._durable if is_durable else self._gathered).append((runner, statement))
        self._schedule()
        outcome: Outcome = wait()
        return outcome

    def _find_failure(self) -> Exception | None:
        failures = [each.failure for each in self._connections]
        return failures[0] if all(failures) else None

    def _schedule(self) -> None:
        if self._is_due or self._find_connection() is None:
            return
        loop = self.engine.loop
        if self._count_under_way() < self._expected and perf_counter() - self._ended < 2 * SECONDS_TO_GATHER:
            if self._gathering is None:
                self._gathering = loop.call_later(SECONDS_TO_GATHER, self._flush_without_others)
            return
        self._is_due = True
        loop.call_soon(self.flush)

    def _flush_without_others(self) -> None:
        """Sends what has gathered: requests that have not come are no longer expected."""
        self._gathering = None
        self._expected -= 1
        self.flush()

    def _count_under_way(self) -> int:
        return len(self._gathered) + len(self._durable) + sum(len(each.submitted) for each in self._connections)

    def flush(self) -> None:
        """Sends what is gathered, if a connection is free."""
        self._is_due = False
        connection = self._find_connection()
        if connection is None:
            return
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self._expected = max(self._expected, self._count_under_way())
        if self._takes_durable():
            taken, self._durable = self._durable, []
            connection.send(taken, is_durable=True)
        elif self._gathered:
            taken, self._gathered = self._gathered, []
            connection.send(taken, is_durable=False)

    def _takes_durable(self) -> bool:
        """Whether the next flush is a durable one: they alternate with others, where both wait."""
        if not self._durable or any(each.is_busy and each.is_durable for each in self._connections):
            return False
        self._was_passed_over = bool(self._gathered) and not self._was_passed_over
        return not self._was_passed_over

    def _find_connection(self) -> _PipelineConnection | None:
        present = self._present
        if not present.is_free and (present.is_late or not present.is_busy):
            present = self._present = next((each for each in self._connections if each.is_free), present)
        return present if present.is_free else None

    # --- What the connections tell

    def note_disconnected(self) -> None:
        """A connection is lost, or could not be made. Where there is none, nobody waits for one."""
        if failure := self._find_failure():
            waiting = [*self._gathered, *self._durable]
            self._gathered, self._durable = [], []
            error = OperationalError(str(failure))
            self.engine.resume([(runner, error) for runner, _ in waiting])
        else:
            self.flush()

    def finish(self, outcomes: Sequence[tuple[RequestGreenlet, Outcome]]) -> None:
        """A flush has ended: its requests continue, and what they then submit is sent together."""
        self.engine.resume(outcomes)
        self.engine.run_ready()
        self._ended = perf_counter()
        if self._gathered or self._durable:
            self._schedule()


class _PipelineConnection:
    """A connection of a pipeline: one flush at a time. It is opened again when it is lost.

    Attributes:
        is_busy: whether a flush is on its way; `is_late`: for long; `is_durable`: one whose COMMIT waits for the disk.
        submitted: what it has.
        failure: why there is no connection; None while there is one, and before the first trial has failed.
    """

    def __init__(self, pipeline: Pipeline, open_connection: Callable[[], Connection[Any]]) -> None:
        self._pipeline, self._open = pipeline, open_connection
        self._loop = pipeline.engine.loop
        self._statements: PreparedStatements | None = None
        self._pgconn: Any = None
        self._lost = asyncio.Event()
        self._file = -1
        self.is_busy = self.is_late = self.is_durable = False
        self.failure: Exception | None = None
        # Of the flush on its way: what was submitted, the groups that are not answered yet, the results of the first
        # of them, and what has become of the others.
        self.submitted: Sequence[_Submitted] = ()
        self._groups: list[Group] = []
        self._answers: list[Any] = []
        self._results: dict[int, Rows | Exception] = {}
        self._slow: set[int] = set()
        # When it was sent, and when the server was last heard of.
        self._began = self._heard = 0.0
        self._timer: TimerHandle | None = None
        self._keeping = self._loop.create_task(self._keep_connected())

    @property
    def is_free(self) -> bool:
        """Whether a flush may be sent."""
        return self._statements is not None and not self.is_busy

    def close(self) -> None:
        self.failure = OperationalError("The service ends.")
        self._keeping.cancel()
        if self._statements is not None:
            self._disconnect(self.failure)

    async def _keep_connected(self) -> None:
        while True:
            # In a thread: to look up a name and to connect may take as long as it likes.
            opening = self._loop.run_in_executor(None, self._open)
            try:
                while not (await asyncio.wait([opening], timeout=MAX_SECONDS_OF_SILENCE))[0]:
                    self._fail(OperationalError("The database does not answer."))
                connection = opening.result()
            except asyncio.CancelledError:
                opening.add_done_callback(_close_opened)
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection
                self._fail(error)
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
                continue
            self._pgconn = connection.pgconn
            self._pgconn.enter_pipeline_mode()
            self._statements, self.failure = PreparedStatements(connection), None
            self._lost.clear()
            self._file = connection.fileno()
            self._loop.add_reader(self._file, self._receive)
            self._pipeline.flush()
            await self._lost.wait()

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._pipeline.note_disconnected()

    # --- A flush

    def send(self, submitted: Sequence[_Submitted], *, is_durable: bool) -> None:
        self.submitted, self.is_durable = submitted, is_durable
        self._results, self._slow = {}, set()
        self._began = self._heard = perf_counter()
        self.is_busy = True
        statements: Any = self._statements
        try:
            self._groups = statements.build_groups([statement for _, statement in submitted])
            for group in self._groups:
                statements.send(group)
            # A statement may be longer than the buffer of the socket.
            if self._pgconn.flush():
                self._loop.add_writer(self._file, self._push)
        except Exception as error:  # noqa: BLE001 - whatever it is, no request may wait forever
            self._disconnect(error if isinstance(error, Error) else OperationalError(str(error)))
            return
        if self._groups:
            self._timer = self._loop.call_later(SECONDS_TO_BE_LATE, self._note_late)
        else:
            self._finish()

    def _push(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._file)
        except Error as error:
            self._disconnect(error)

    def _receive(self) -> None:
        self._heard = perf_counter()
        try:
            self._pgconn.consume_input()
            self._take_results()
        except Error as error:
            self._disconnect(error)
            return
        if self.is_busy and not self._groups:
            # Another server is the primary now: a new connection may lead to it.
            errors = [result for result in self._results.values() if isinstance(result, Error)]
            refused = next(filter(is_refused_by_standby, errors), None)
            if refused is None:
                self._finish()
            else:
                self._disconnect(refused)

    def _take_results(self) -> None:
        """Takes what has arrived of the results of a flush."""
        pgconn = self._pgconn
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                # This is the case after each command, and when nothing more arrives.
                if pgconn.status == ConnStatus.BAD:
                    raise OperationalError(pgconn.get_error_message())
                if not self._groups:
                    return
            elif result.status == ExecStatus.PIPELINE_SYNC:
                answers, self._answers = self._answers, []
                self._note_answers(self._groups.pop(0), answers)
                if not self._groups:
                    return
            else:
                self._answers.append(self._load(result))

    def _load(self, result: Any) -> Any:
        """The rows of a result, or its error; loaded as it arrives, because many long ones would hold the loop."""
        if result.status == ExecStatus.FATAL_ERROR:
            return error_from_result(result)
        statements: Any = self._statements
        units, position = self._groups[0].units, len(self._answers) - statements.results_before
        is_unit = 0 <= position < len(units) and result.status != ExecStatus.PIPELINE_ABORTED
        return load_unit(units[position], result) if is_unit else result

    def _note_answers(self, group: Group, answers: Sequence[Any]) -> None:
        """Notes what has become of a transaction: it was committed, or nothing of it was done."""
        statements: Any = self._statements
        units, prepared = group
        for position, answer in enumerate(answers):
            if isinstance(answer, Error):
                self._note_error(group, answer, position - statements.results_before)
                return
        if prepared is not None:
            prepared.describe(answers[-1], statements.connection)
            return
        for unit, rows in zip(units, answers[statements.results_before :], strict=True):
            self._results.update(zip(unit.indexes, rows, strict=True))

    def _note_error(self, group: Group, error: Error, position: int) -> None:
        """Notes what ended a transaction, and which of its units has met it: the one in a position, or its COMMIT."""
        statements: Any = self._statements
        units, prepared = group
        if prepared is not None or isinstance(error, OUTDATED):
            statements.forget([prepared] if prepared else [unit.prepared for unit in units])
        indexes = units[min(position, len(units) - 1)].indexes if units else ()
        if len(indexes) != 1:
            return
        if isinstance(error, (QueryCanceled, LockNotAvailable)):
            self._slow.update(indexes)
        # That of a transaction of several may be due to another one, of which nothing is left.
        elif len(units) == 1 and (not isinstance(error, OUTDATED) or is_refused_by_standby(error)):
            self._results[indexes[0]] = error

    def _finish(self) -> None:
        seconds = perf_counter() - self._began
        submitted, self.submitted = self.submitted, ()
        if self._timer is not None:
            self._timer.cancel()
        self.is_busy = self.is_late = False
        results = self._results
        self._pipeline.finish(
            [
                (runner, Outcome(results.get(index), seconds, index in self._slow))
                for index, (runner, _) in enumerate(submitted)
            ]
        )

    # --- What may go wrong

    def _note_late(self) -> None:
        self.is_late = True
        self._timer = self._loop.call_later(SECONDS_BETWEEN_LOOKS, self._look_at_silence)
        self._pipeline.flush()

    def _look_at_silence(self) -> None:
        if perf_counter() - self._heard >= MAX_SECONDS_OF_SILENCE or self._pipeline.is_given_up():
            logger.error("The database is silent; a connection of the pipeline is closed.")
            self._disconnect(OperationalError("The database does not answer."))
        else:
            self._timer = self._loop.call_later(SECONDS_BETWEEN_LOOKS, self._look_at_silence)

    def _disconnect(self, error: Error) -> None:
        """Gives the connection up. What was answered is known; of the rest nobody knows whether it was done."""
        # libpq tells no more which it was, once it is lost.
        self._loop.remove_reader(self._file)
        self._loop.remove_writer(self._file)
        self._statements.connection.close()  # type: ignore[union-attr]  # there was one
        self._statements = None
        self._groups, self._answers = [], []
        self._lost.set()
        if self.is_busy:
            self._results = dict.fromkeys(range(len(self.submitted)), error) | self._results
            self._finish()
        self._pipeline.note_disconnected()


def _close_opened(opening: asyncio.Future[Connection[Any]]) -> None:
    """Closes a connection that comes too late."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
