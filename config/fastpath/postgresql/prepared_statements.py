"""Statements that the server parses once for a connection, with nothing between them and libpq but psycopg's adapters.

Replaces: cursors. Buys: a cursor costs several times what it takes to send a statement and to wait; statements that are
known together are sent together (libpq's pipeline mode).
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import count, islice
from typing import Any, NamedTuple, TypeVar

import orjson
from psycopg import Binary, Connection, DataError, Error, OperationalError, ProgrammingError, abc, generators
from psycopg._queries import PostgresQuery
from psycopg.adapt import Dumper, PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, NumericValueOutOfRange, error_from_result
from psycopg.postgres import types
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Wait

from config.fastpath.postgresql.batches import Batch, Rows, Statement, Unit, unite
from config.fastpath.postgresql.given_rows import NUMBER, GivenRows
from config.postgresql.transactions import is_refused_by_standby

# The server does not know the statement any more, or in another form.
_OUTDATED = (FeatureNotSupported, InvalidSqlStatementName)
# As many as psycopg would keep: each takes memory in its server process. Several times as many as are sent at once, so
# that none is forgotten between being looked up and being sent.
MAX_STATEMENTS = 100
# A plan is for tables as large as they were when it was made: of one that was empty it reads all rows. PostgreSQL makes
# it anew when it has analyzed the table, up to a minute and some thousand rows later. So plans are forgotten after 64
# calls, 128 and so on, later after so many each: planning all of a connection's takes some milliseconds.
MIN_CALLS_OF_PLANS, MAX_CALLS_OF_PLANS = 64, 2_048
# Columns of these types become the same Python values when they are sent in binary, which is read in a fraction of the
# time. Not so jsonb and inet, which Django wants as text.
_SAME_IN_BINARY = frozenset(
    types[name].oid
    for name in ("bool", "bytea", "date", "float8", "int2", "int4", "int8", "numeric", "text", "timestamptz", "uuid")
) | {types["varchar"].oid, types["text"].array_oid, types["varchar"].array_oid}


Value = TypeVar("Value")
# The text of a statement, and the types of its values.
_Key = tuple[str, tuple[int, ...]]

# Of names, which never come twice: a connection may still know a statement that is forgotten here.
_numbers = count()
# Of statements that were prepared anew since a column had another type.
_generations: dict[_Key, int] = {}
# A new process may find several generations that a pooler still knows.
_ATTEMPTS = 6


class _Prepared(NamedTuple):
    """A statement that the server knows.

    Attributes:
        format: of its results.
        loads: makes Python's values of them; what it knows of types, zones and columns is read once.
        generation: how often it was prepared anew since a column had another type.
    """

    name: bytes
    format: Format
    loads: abc.Transformer
    generation: int


# A statement as it is sent, with its values and their formats.
_Bound = tuple[_Key, _Prepared, Any, Any]


class GivenRowsDumper(Dumper):
    """Makes JSON of rows, which PostgreSQL reads in a fraction of the time that psycopg needs to write arrays."""

    oid = types["json"].oid

    def dump(self, rows: GivenRows) -> bytes:
        """The rows with their numbers, from 0.

        Raises:
            DataError, ProgrammingError, UnicodeEncodeError: as psycopg does for a value that it cannot send.
        """
        try:
            made = orjson.dumps([{**row, NUMBER: number} for number, row in enumerate(rows)], default=_to_text)
        except orjson.JSONEncodeError as error:
            for text in _get_values(rows, str):
                text.encode()
            if any(integer.bit_length() > 63 for integer in _get_values(rows, int)):
                raise NumericValueOutOfRange(str(error)) from error
            raise ProgrammingError(str(error)) from error
        if rb"\u0000" in made and any("\0" in text for text in _get_values(rows, str)):
            raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return made


def _get_values(rows: GivenRows, kind: type[Value]) -> Iterator[Value]:
    return (value for row in rows for value in row.values() if isinstance(value, kind))


def _to_text(value: object) -> str:
    """The text that PostgreSQL reads a value from."""
    if isinstance(value, Binary):
        value = value.obj
    if isinstance(value, bytes | memoryview):
        return rf"\x{value.hex()}"
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


class PreparedStatements:
    """Those of one connection, each by its text and the types of its values: what was used last stays.

    The connection must not have a `prepare_threshold`: psycopg deallocates all that there are after a ROLLBACK.

    Args:
        connection: that knows them.
        set_local: the statement that each transaction begins with; empty where there is none.
    """

    def __init__(self, connection: Connection[Any], set_local: str = "") -> None:
        self._connection = connection
        self._set_local: Sequence[Statement] = [(set_local, ())] if set_local else []
        # PgBouncer before 1.21 gives all clients the names of each other: better unknown than another one's.
        self._name = f"fastpath_{secrets.token_hex(8)}"
        self._pgconn = connection.pgconn
        self._dumps = Transformer(connection)
        self._prepared: OrderedDict[_Key, _Prepared] = OrderedDict()
        self._calls, self._calls_of_plans = 0, MIN_CALLS_OF_PLANS

    def run(self, *statements: Statement) -> list[Rows]:
        """The rows of each statement; none where it has no result.

        Several are sent at once and waited for once, as is the BEGIN of a transaction with its first statement. Where
        one fails, those behind it are not run. Outside of a transaction they are done or not together, and done once
        more where the server does not know one of them any more.

        Args:
            statements: the SQL, with `%s` for each value, and the values.

        Raises:
            psycopg.Error: as a cursor raises it.
        """
        with self._connection.lock:
            self._renew_plans()
            first = self._set_local if self._set_local and self._is_idle() else ()
            for attempt in count(1):
                bound: list[_Bound] = []
                try:
                    bound = [self._bind(*statement) for statement in (*first, *statements)]
                    results = self._execute(bound)
                    break
                except _OUTDATED as error:
                    if is_refused_by_standby(error):
                        raise
                    self._forget(bound, error)
                    if attempt == _ATTEMPTS or not self._is_idle():
                        raise
            # Perhaps committed: an error from here on must not run a statement again, whatever it is.
            return _load_rows(bound[len(first) :], results[len(first) :])

    def run_batches(
        self, batches: Sequence[Batch], give_way: Callable[[], None] = lambda: None
    ) -> list[list[Rows] | Exception]:
        """What `run` gives or raises for each of several batches of statements that have nothing to do with each other.

        They are sent at once and waited for once, outside of a transaction. Those that may share one take effect
        together or not at all; where they do not, each is run again by itself: no batch meets the error of another one.

        Args:
            batches: the batches.
            give_way: is called each time before rows are loaded, which takes long where there are megabytes of them.

        Raises:
            psycopg.Error: the connection is lost.
        """
        results: list[list[Rows] | Exception] = [[] for _ in batches]
        bound: list[tuple[Unit, list[_Bound]]] = []
        again: list[int] = []
        with self._connection.lock:
            self._renew_plans()
            for unit in unite(batches):
                try:
                    bound.append((unit, [self._bind(*statement) for statement in unit.statements]))
                except Exception:  # noqa: BLE001 - a value or a statement that cannot be sent: it is met again below
                    again += unit.indexes
            shared = [each for each in bound if each[0].shared_transaction]
            transactions = [[each] for each in bound if not each[0].shared_transaction] + [shared] * bool(shared)
            first = [self._bind(*statement) for statement in self._set_local]
            sent = [[*first, *(one for _, statements in units for one in statements)] for units in transactions]
            for units, answers in zip(transactions, self._send_pipeline(sent), strict=True):
                indexes = [index for unit, _ in units for index in unit.indexes]
                try:
                    _raise_error(answers)
                except Error as error:
                    if len(indexes) > 1 or isinstance(error, _OUTDATED):
                        again += indexes
                    else:
                        results[indexes[0]] = error
                    continue
                # Committed: whatever happens from here on must not run a statement again.
                remaining = iter(answers[len(first) :])
                for unit, statements in units:
                    own = list(islice(remaining, len(statements)))
                    give_way()
                    for index, result in zip(unit.indexes, _load_unit(unit, statements, own), strict=True):
                        results[index] = result
        for index in again:
            try:
                results[index] = self.run(*batches[index].statements)
            except Exception as error:  # noqa: BLE001 - raised where the batch was submitted
                results[index] = error
        return results

    def _forget(self, bound: Sequence[_Bound], error: Error) -> None:
        """Lets statements be prepared anew that the server does not know, or not in their present form.

        A column has had another type since, or somebody made the server forget all that was prepared. A pooler knows
        statements by their text, which therefore becomes another one, the same for all of its clients.
        """
        for key, *_ in bound:
            forgotten = self._prepared.pop(key, None)
            if forgotten and isinstance(error, FeatureNotSupported):
                _generations[key] = max(_generations.get(key, 0), forgotten.generation + 1)
                self._deallocate(forgotten)

    def _renew_plans(self) -> None:
        self._calls += 1
        if self._calls >= self._calls_of_plans and self._is_idle():
            self._calls, self._calls_of_plans = 0, min(2 * self._calls_of_plans, MAX_CALLS_OF_PLANS)
            self._pgconn.send_query_params(b"DISCARD PLANS", None)
            self._results()

    def _bind(self, sql: str, values: Sequence[object]) -> _Bound:
        dumps = self._dumps
        given = dumps.dump_sequence(values, [PyFormat.AUTO] * len(values))
        formats, key = dumps.formats, (sql, dumps.types or ())
        prepared = self._prepared.get(key) or self._prepare(key, values)
        self._prepared.move_to_end(key)
        return key, prepared, given, formats

    def _execute(self, bound: Sequence[_Bound]) -> Sequence[PGresult]:
        begin = not self._connection.autocommit and self._is_idle()
        if not begin and len(bound) == 1:
            self._send(bound[0])
            return self._results()
        # As psycopg does before the first statement of a transaction.
        before = [self._connection._get_tx_start_command()] if begin else []
        (results,) = self._send_pipeline([[*before, *bound]])
        # Also of BEGIN.
        _raise_error(results)
        return results[begin : begin + len(bound)]

    def _send_pipeline(self, groups: Sequence[Sequence[_Bound | bytes]]) -> list[list[PGresult]]:
        """What the server answers to groups of commands, which it gets in libpq's pipeline mode.

        Behind one that fails, those of its group are not run. Outside of a transaction a group is done as a whole.
        """
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        try:
            self._send_groups(groups)
            results = self._connection.wait(_fetch_results(pgconn, len(groups)))
        except BaseException:
            # What is still on its way would be taken for the answer to the next statement.
            self._connection.close()
            raise
        if pgconn.status == ConnStatus.OK:
            pgconn.exit_pipeline_mode()
        return results

    def _send_groups(self, groups: Sequence[Sequence[_Bound | bytes]]) -> None:
        try:
            for group in groups:
                for one in group:
                    self._send(one)
                self._pgconn.pipeline_sync()
        except OperationalError:
            # The server said why, before it closed the connection.
            if reason := self._pgconn.get_result():
                _raise_error([reason])
            raise

    def _send(self, bound: _Bound | bytes) -> None:
        if isinstance(bound, bytes):
            self._pgconn.send_query_params(bound, None)
        else:
            _, prepared, values, formats = bound
            self._pgconn.send_query_prepared(prepared.name, values, formats, prepared.format)

    def _prepare(self, key: _Key, values: Sequence[object]) -> _Prepared:
        while len(self._prepared) >= MAX_STATEMENTS:
            self._deallocate(self._prepared.popitem(last=False)[1])
        query = PostgresQuery(Transformer(self._connection))
        query.convert(key[0], values)
        name = f"{self._name}_{next(_numbers)}".encode()
        generation = _generations.get(key, 0)
        text = b"%b /* %d */" % (query.query, generation) if generation else query.query
        try:
            self._pgconn.send_prepare(name, text, key[1])
            self._results()
            self._pgconn.send_describe_prepared(name)
            (columns,) = self._results()
        except FeatureNotSupported:
            # The pooler knew it already.
            _generations[key] = generation + 1
            raise
        kinds = [columns.ftype(column) for column in range(columns.nfields)]
        sent_as = Format.BINARY if _SAME_IN_BINARY.issuperset(kinds) else Format.TEXT
        loads = Transformer(self._connection)
        loads.set_loader_types(kinds, sent_as)
        self._prepared[key] = made = _Prepared(name, sent_as, loads, generation)
        return made

    def _deallocate(self, prepared: _Prepared) -> None:
        self._connection.wait(self._connection._deallocate(prepared.name))

    def _is_idle(self) -> bool:
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def _results(self) -> list[PGresult]:
        """Waits for what was sent; an interrupt cancels it."""
        results = self._connection.wait(generators.execute(self._pgconn))
        _raise_error(results)
        return results


def _load_unit(unit: Unit, bound: Sequence[_Bound], results: Sequence[PGresult]) -> Sequence[list[Rows] | Exception]:
    """What each batch of a unit gets: its rows, or the error that they meet as they are loaded."""
    try:
        rows = _load_rows(bound, results)
    except Exception as error:  # noqa: BLE001 - of one batch, while all others have their rows
        return [error] if len(unit.indexes) == 1 else _load_apart(unit, bound[0][1], results[0])
    if len(unit.indexes) == 1:
        return [rows]
    made: list[list[Rows] | Exception] = [[[]] for _ in unit.indexes]
    for row in rows[0]:
        made[row[-1]][0].append(row)  # type: ignore[index]  # none is an error
    return made


def _load_apart(unit: Unit, prepared: _Prepared, result: PGresult) -> Sequence[list[Rows] | Exception]:
    """Loads one row after the other, so that an error stays with the batch whose row it is."""
    made: list[list[Rows] | Exception] = [[[]] for _ in unit.indexes]
    for position in range(result.ntuples):
        number: Any = result.get_value(position, result.nfields - 1)
        index = int.from_bytes(number, "big") if prepared.format == Format.BINARY else int(number)
        found = made[index]
        try:
            if not isinstance(found, Exception):
                found[0] += _load(prepared, result, position, position + 1)
        except Exception as error:  # noqa: BLE001 - raised where the batch was submitted
            made[index] = error
    return made


def _load_rows(bound: Sequence[_Bound], results: Sequence[PGresult]) -> list[Rows]:
    return [
        _load(prepared, result, 0, result.ntuples) for (_, prepared, *_), result in zip(bound, results, strict=True)
    ]


def _load(prepared: _Prepared, result: PGresult, start: int, end: int) -> Rows:
    prepared.loads.set_pgresult(result, set_loaders=False)
    try:
        return prepared.loads.load_rows(start, end, tuple)
    finally:
        prepared.loads.set_pgresult(None, set_loaders=False)


def _fetch_results(pgconn: PGconn, groups: int) -> abc.PQGen[list[list[PGresult]]]:
    """The results of each group of commands that was sent in pipeline mode, up to their end or that of the connection.

    Outside of a transaction an error may come behind those of all commands: of a foreign key, when the group commits.
    """
    yield from generators.send(pgconn)
    made: list[list[PGresult]] = []
    for _ in range(groups):
        results: list[PGresult] = []
        made.append(results)
        while True:
            try:
                while pgconn.is_busy():
                    yield Wait.R
                    pgconn.consume_input()
            except OperationalError:
                # The server said why, before it closed the connection.
                _raise_error(results)
                raise
            result = pgconn.get_result()
            if result is None:
                # So it is behind each command, and where nothing comes any more.
                if pgconn.status == ConnStatus.BAD:
                    _raise_error(results)
                    raise OperationalError("The connection is lost.")
            elif result.status == ExecStatus.PIPELINE_SYNC:
                break
            else:
                results.append(result)
    return made


def _raise_error(results: Sequence[PGresult]) -> None:
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
