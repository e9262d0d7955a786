"""The statements of all requests of a worker to one database, sent together.

Replaces: a connection for each request. Buys: statements that are submitted while an answer is on its way are sent in
one flush, share transactions and their COMMITs, and many of them are one statement; nothing blocks the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from psycopg import Connection, Error, OperationalError
from psycopg.errors import LockNotAvailable, QueryCanceled
from psycopg.pq import ConnStatus, ExecStatus

from config.fastpath.greenlets import RequestGreenlet, Scheduler, get_request_greenlet, wait
from config.fastpath.postgresql.batches import Batch, Rows, Unit, unite
from config.fastpath.postgresql.prepared_statements import (
    OUTDATED,
    Bound,
    Prepared,
    PreparedStatements,
    load_unit,
    raise_error,
)
from config.postgresql.transactions import is_refused_by_standby

logger = logging.getLogger(__name__)

# A flush waits for so long, at most, for as many statements as were under way together of late: who was answered is
# about to ask again. Without it, flushes have one or two statements, and a read costs a fifth more.
SECONDS_TO_GATHER = 0.001
SECONDS_TO_RETURN = 0.002
# After that, what is submitted takes the other connection: a COMMIT may wait for the disk, a statement for a lock.
SECONDS_TO_BE_LATE = 0.010
CONNECTIONS = 2
# No time-out of PostgreSQL's holds where nothing comes from it. The silence is looked at once a second.
MAX_SECONDS_OF_SILENCE = 3.0
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_TRIALS = 0.2
# Of a statement in a flush. Most take less than a millisecond. One that takes longer is run by the pool, where it
# delays nobody. A write waits for another one's COMMIT, which takes a few milliseconds.
TIME_OUTS = {"lock_timeout": "25ms", "statement_timeout": "75ms"}


class Outcome(NamedTuple):
    """What became of a batch.

    Attributes:
        result: its rows, or its error; None where nothing of it was done, and it is to be run again by itself: it has
            met the error of another one, a time-out, or a server that does not know its statements.
        began: when it was sent, by `time.perf_counter`.
        seconds: that its flush took.
        is_slow: whether it has exceeded a time-out by itself.
    """

    result: list[Rows] | Exception | None
    began: float
    seconds: float
    is_slow: bool = False


class _Submitted(NamedTuple):
    runner: RequestGreenlet
    batch: Batch


class Pipeline:
    """The pipeline of a database.

    Args:
        scheduler: of the requests.
        open_connection: opens a connection; it is called in a thread.
        is_given_up: whether nothing is to be expected of the database any more.
    """

    def __init__(
        self, scheduler: Scheduler, open_connection: Callable[[], PreparedStatements], is_given_up: Callable[[], bool]
    ) -> None:
        self.scheduler, self.is_given_up = scheduler, is_given_up
        self._loop = scheduler.loop
        self._gathered: list[_Submitted] = []
        # What writes to the WAL is sent apart: its COMMIT waits for the disk, and reads do not wait with it.
        self._durable: list[_Submitted] = []
        self._connections = [_PipelineConnection(self, open_connection) for _ in range(CONNECTIONS)]
        self._present = self._connections[0]
        self._gathering: TimerHandle | None = None
        self._is_due = self._was_passed_over = False
        # How many statements were under way together, one less for each wait in vain; and when the last flush ended.
        self._expected, self._ended = 0, 0.0

    async def start(self) -> None:
        """Connects, or has failed to do so for the first time."""
        await asyncio.gather(*(each.start() for each in self._connections))

    def close(self) -> None:
        """Closes the connections."""
        for each in self._connections:
            each.close()

    def submit(self, batch: Batch, *, is_durable: bool = False) -> Outcome:
        """Sends a batch with those of others; call it in a greenlet.

        Args:
            batch: the batch.
            is_durable: whether its COMMIT waits for the disk.

        Raises:
            OperationalError: the database is away.
        """
        runner: Any = get_request_greenlet()
        if failure := self._find_failure():
            raise OperationalError(str(failure))
        (self._durable if is_durable else self._gathered).append(_Submitted(runner, batch))
        self._schedule()
        outcome: Outcome = wait()
        return outcome

    def _find_failure(self) -> Exception | None:
        failures = [each.failure for each in self._connections]
        return failures[0] if all(failures) else None

    def _schedule(self) -> None:
        if self._is_due or self._find_connection() is None:
            return
        if self._count_under_way() < self._expected and perf_counter() - self._ended < SECONDS_TO_RETURN:
            if self._gathering is None:
                self._gathering = self._loop.call_later(SECONDS_TO_GATHER, self._flush_without_others)
            return
        self._is_due = True
        self._loop.call_soon(self._flush)

    def _flush_without_others(self) -> None:
        """Sends what there is: who has not come by now is not expected any more."""
        self._gathering = None
        self._expected -= 1
        self._flush()

    def _count_under_way(self) -> int:
        return len(self._gathered) + len(self._durable) + sum(each.count_submitted() for each in self._connections)

    def _flush(self) -> None:
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
        if present.is_free:
            return present
        if present.is_busy and not present.is_late:
            return None
        for each in self._connections:
            if each.is_free:
                self._present = each
                return each
        return None

    # --- What the connections tell

    def note_late(self) -> None:
        """A flush takes long: another connection goes on with what is not sent yet."""
        self._flush()

    def note_connected(self) -> None:
        """A connection may be used."""
        self._flush()

    def note_disconnected(self) -> None:
        """A connection is lost, or could not be made. Where there is none, nobody waits for one."""
        if failure := self._find_failure():
            waiting = [*self._gathered, *self._durable]
            self._gathered, self._durable = [], []
            error = OperationalError(str(failure))
            self.scheduler.resume([(each.runner, error) for each in waiting])
        elif not self._present.is_busy:
            self._flush()

    def finish(self, outcomes: Sequence[tuple[RequestGreenlet, Outcome]]) -> None:
        """A flush has ended: its requests go on, and what they submit meanwhile is sent together."""
        self._ended = perf_counter()
        self.scheduler.resume(outcomes)
        self.scheduler.run_ready()
        if self._gathered or self._durable:
            self._schedule()


class _PipelineConnection:
    """A connection of a pipeline: one flush at a time. It is opened again when it is lost.

    Attributes:
        is_busy: whether a flush is on its way; `is_late`: for long; `is_durable`: one whose COMMIT waits for the disk.
        failure: why there is no connection; None while there is one, and before the first trial has failed.
    """

    def __init__(self, pipeline: Pipeline, open_connection: Callable[[], PreparedStatements]) -> None:
        self._pipeline, self._open = pipeline, open_connection
        self._loop: AbstractEventLoop = pipeline.scheduler.loop
        self._statements: PreparedStatements | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._file = -1
        self.is_busy = self.is_late = self.is_durable = False
        self.failure: Exception | None = None
        # Of the flush on its way: what was submitted, and of what is not answered yet the groups of units that are
        # one transaction each, the results of the first group, and what has become of the others.
        self._submitted: Sequence[_Submitted] = ()
        self._groups: list[_Group] = []
        self._answers: list[Any] = []
        self._results: dict[int, list[Rows] | Exception] = {}
        self._slow: set[int] = set()
        # When it was sent, and when the server was last heard of.
        self._began = self._heard = 0.0
        self._timer: TimerHandle | None = None
        self._is_writing = self._is_of_standby = False

    @property
    def is_free(self) -> bool:
        """Whether a flush may be sent."""
        return self._statements is not None and not self.is_busy

    def count_submitted(self) -> int:
        """How many batches the flush on its way has."""
        return len(self._submitted)

    async def start(self) -> None:
        tried = asyncio.Event()
        self._keeping = self._loop.create_task(self._keep_connected(tried))
        await tried.wait()

    def close(self) -> None:
        self.failure = OperationalError("The service ends.")
        if self._keeping is not None:
            self._keeping.cancel()
        if self._statements is not None:
            self._disconnect(self.failure)

    async def _keep_connected(self, tried: asyncio.Event) -> None:
        while True:
            # In a thread: to look up a name and to connect may take as long as it likes.
            opening = self._loop.run_in_executor(None, self._open)
            try:
                while not (await asyncio.wait([opening], timeout=MAX_SECONDS_OF_SILENCE))[0]:
                    self.failure = OperationalError("The database does not answer.")
                    tried.set()
                    self._pipeline.note_disconnected()
                self._statements = opening.result()
            except asyncio.CancelledError:
                opening.add_done_callback(_close_opened)
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection
                self.failure = error
                tried.set()
                self._pipeline.note_disconnected()
                await asyncio.sleep(SECONDS_BETWEEN_TRIALS)
                continue
            self.failure = None
            self._lost.clear()
            self._file = self._pgconn.socket
            self._loop.add_reader(self._file, self._receive)
            tried.set()
            self._pipeline.note_connected()
            await self._lost.wait()

    @property
    def _pgconn(self) -> Any:
        return self._statements.connection.pgconn  # type: ignore[union-attr]  # where there is one

    # --- A flush

    def send(self, submitted: Sequence[_Submitted], *, is_durable: bool) -> None:
        self._submitted, self.is_durable = submitted, is_durable
        self._results, self._slow = {}, set()
        self._began = self._heard = perf_counter()
        self.is_busy = True
        try:
            self._groups = self._build_groups()
            if self._groups:
                self._pgconn.enter_pipeline_mode()
                for group in self._groups:
                    group.send(self._statements)
                    self._pgconn.pipeline_sync()
                self._push()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody shall wait for an answer
            self._disconnect(error if isinstance(error, Error) else OperationalError(str(error)))
            return
        if self._groups:
            self._timer = self._loop.call_later(SECONDS_TO_BE_LATE, self._note_late)
        else:
            self._finish()

    def _build_groups(self) -> list[_Group]:
        """The transactions of a flush. What is not prepared yet is, before all others."""
        statements: Any = self._statements
        own: list[_Group] = []
        shared: list[tuple[Unit, list[Bound]]] = []
        new: dict[Prepared, None] = {}
        first = [statements.bind(*each) for each in statements.set_local]
        for unit in unite([each.batch for each in self._submitted]):
            try:
                bound = [statements.bind(*statement) for statement in unit.statements]
            except Exception:  # noqa: BLE001, S112 - a value that cannot be sent: it is met again where it runs alone
                continue
            new.update(dict.fromkeys(each.prepared for each in (*first, *bound) if not each.prepared.is_sent))
            if unit.shared_transaction:
                shared.append((unit, bound))
            else:
                own.append(_Group([(unit, bound)], first))
        if shared:
            own.append(_Group(shared, first))
        known = [each for each in first if each.prepared.is_sent]
        preparations = [_Group([], known, prepared) for prepared in new]
        while name := statements.take_superfluous():
            preparations.append(_Group([], [], closed=name))
        return [*preparations, *own]

    def _push(self) -> None:
        """Hands to the kernel what it takes: a statement may be longer than the buffer of the socket."""
        was_writing, self._is_writing = self._is_writing, bool(self._pgconn.flush())
        if self._is_writing and not was_writing:
            self._loop.add_writer(self._file, self._push_rest)
        elif was_writing and not self._is_writing:
            self._loop.remove_writer(self._file)

    def _push_rest(self) -> None:
        try:
            self._push()
        except Error as error:
            self._disconnect(error)

    def _receive(self) -> None:
        self._heard = perf_counter()
        try:
            self._pgconn.consume_input()
            if self.is_busy:
                self._take_results()
            elif self._pgconn.status == ConnStatus.BAD:
                raise OperationalError("The connection is lost.")
        except Error as error:
            self._disconnect(error)
            return
        if self.is_busy and not self._groups:
            self._finish()
        if self._is_of_standby and self.is_free:
            self._disconnect(OperationalError("The server takes no writes."))

    def _take_results(self) -> None:
        """Takes what has arrived of the results of a flush."""
        pgconn = self._pgconn
        while self._groups:
            if pgconn.is_busy():
                return
            result = pgconn.get_result()
            if result is None:
                # So it is behind each command, and where nothing comes any more.
                if pgconn.status == ConnStatus.BAD:
                    raise _find_reason(self._answers)
            elif result.status == ExecStatus.PIPELINE_SYNC:
                answers, self._answers = self._answers, []
                self._load(self._groups.pop(0), answers)
            else:
                self._answers.append(result)
        pgconn.exit_pipeline_mode()

    def _load(self, group: _Group, answers: Sequence[Any]) -> None:
        """Notes what has become of a transaction: it was committed, or nothing of it was done."""
        statements: Any = self._statements
        indexes = [index for unit, _ in group.units for index in unit.indexes]
        try:
            raise_error(answers)
        except Error as error:
            if isinstance(error, OUTDATED) or group.prepared:
                statements.forget(group.all_prepared, error)
            # Another server is the primary now: a new connection may lead to it.
            self._is_of_standby |= is_refused_by_standby(error)
            is_own = len(indexes) == 1 and not isinstance(error, (*OUTDATED, QueryCanceled, LockNotAvailable))
            if is_own:
                self._results[indexes[0]] = error
            elif len(indexes) == 1 and isinstance(error, (QueryCanceled, LockNotAvailable)):
                self._slow.add(indexes[0])
            return
        if group.prepared:
            group.prepared.describe(answers[-1], statements.connection)
            return
        position = len(group.first)
        for unit, bound in group.units:
            own = answers[position : position + len(bound)]
            position += len(bound)
            self._results.update(zip(unit.indexes, load_unit(unit, bound, own), strict=True))

    def _finish(self) -> None:
        seconds = perf_counter() - self._began
        submitted, self._submitted = self._submitted, ()
        self._stop_timer()
        self.is_busy = self.is_late = False
        results = self._results
        self._pipeline.finish(
            [
                (each.runner, Outcome(results.get(index), self._began, seconds, index in self._slow))
                for index, each in enumerate(submitted)
            ]
        )

    # --- What may go wrong

    def _note_late(self) -> None:
        self.is_late = True
        self._timer = self._loop.call_later(SECONDS_BETWEEN_LOOKS, self._look_at_silence)
        self._pipeline.note_late()

    def _look_at_silence(self) -> None:
        seconds = perf_counter() - self._heard
        if seconds >= MAX_SECONDS_OF_SILENCE or self._pipeline.is_given_up():
            logger.error("The database is silent; a connection of the pipeline is closed.")
            self._disconnect(OperationalError("The database does not answer."))
        else:
            self._timer = self._loop.call_later(SECONDS_BETWEEN_LOOKS, self._look_at_silence)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _disconnect(self, error: Error) -> None:
        """Gives the connection up. What was answered is known; of the rest nobody knows whether it was done."""
        connection: Connection[Any] = self._statements.connection  # type: ignore[union-attr]  # there was one
        # libpq tells no more which it was, once it is lost.
        self._loop.remove_reader(self._file)
        if self._is_writing:
            self._loop.remove_writer(self._file)
        self._statements, self._is_writing, self._is_of_standby = None, False, False
        connection.close()
        self._groups, self._answers = [], []
        self._lost.set()
        if self.is_busy:
            self._results = dict.fromkeys(range(len(self._submitted)), error) | self._results
            self._finish()
        self._pipeline.note_disconnected()


def _find_reason(answers: Sequence[Any]) -> OperationalError:
    """Why a connection is lost, as the server said before it closed it."""
    try:
        raise_error(answers)
    except OperationalError as error:
        return error
    except Error:
        # The error of one statement, of which the others know nothing.
        pass
    return OperationalError("The connection is lost.")


def _close_opened(opening: asyncio.Future[PreparedStatements]) -> None:
    """Closes a connection that comes too late."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().connection.close()


class _Group:
    """What is one transaction of a flush.

    Args:
        units: the statements, and what they are bound to.
        first: what the transaction begins with.
        prepared: the statement that is prepared, where it is no transaction.
        closed: the name of a statement that the server is to forget.
    """

    __slots__ = ("closed", "first", "prepared", "units")

    def __init__(
        self,
        units: Sequence[tuple[Unit, list[Bound]]],
        first: Sequence[Bound],
        prepared: Prepared | None = None,
        closed: bytes | None = None,
    ) -> None:
        self.units, self.first, self.prepared, self.closed = units, first, prepared, closed

    @property
    def all_prepared(self) -> list[Prepared]:
        """All statements that the server must know."""
        own = [each for _, bound in self.units for each in bound]
        found = [each.prepared for each in (*self.first, *own)]
        return found if self.prepared is None else [self.prepared]

    def send(self, statements: Any) -> None:
        for one in self.first:
            statements.send(one)
        if self.prepared is not None:
            statements.send_preparation(self.prepared)
        if self.closed is not None:
            statements.send_close(self.closed)
        for _, bound in self.units:
            for each in bound:
                statements.send(each)
