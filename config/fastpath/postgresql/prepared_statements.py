"""Statements that the server parses once for a connection, with nothing between them and libpq but psycopg's adapters.

Replaces: cursors. Buys: a cursor costs several times what it takes to send a statement and to wait; statements that are
known together are sent together (libpq's pipeline mode).
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count
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

from config.fastpath.postgresql.batches import Rows, Statement, Unit
from config.fastpath.postgresql.given_rows import NUMBER, GivenRows
from config.postgresql.transactions import is_refused_by_standby

# The server does not know the statement any more, or in another form: a column has another type.
OUTDATED = (FeatureNotSupported, InvalidSqlStatementName)
# As many as psycopg would keep: each takes memory in its server process. Several times as many as are sent at once, so
# that none is forgotten between being looked up and being sent.
MAX_STATEMENTS = 100
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


class Prepared:
    """A statement that the server knows, or will.

    Attributes:
        query: its text as PostgreSQL reads it; `types` are those of its values.
        is_sent: whether the server was told of it.
        format: of its results: text, until their types are known.
        loads: makes Python's values of them; what it knows of types, zones and columns is read once.
    """

    __slots__ = ("format", "is_sent", "key", "loads", "name", "query", "types")

    def __init__(self, key: _Key, name: bytes, query: bytes) -> None:
        self.key, self.name, self.query, self.types = key, name, query, key[1]
        self.is_sent = False
        self.format = Format.TEXT
        self.loads: abc.Transformer | None = None

    def describe(self, result: PGresult, connection: Connection[Any]) -> None:
        """Takes note of the types of its columns."""
        kinds = [result.ftype(column) for column in range(result.nfields)]
        self.format = Format.BINARY if _SAME_IN_BINARY.issuperset(kinds) else Format.TEXT
        self.loads = Transformer(connection)
        self.loads.set_loader_types(kinds, self.format)


class Bound(NamedTuple):
    """A statement with its values and their formats, as it is sent."""

    prepared: Prepared
    values: Any
    formats: Any


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
        self.connection = connection
        self.set_local: Sequence[Statement] = [(set_local, ())] if set_local else []
        # PgBouncer before 1.21 gives all clients the names of each other: better unknown than another one's.
        self._name = f"fastpath_{secrets.token_hex(8)}"
        self._pgconn = connection.pgconn
        self._dumps = Transformer(connection)
        self._prepared: OrderedDict[_Key, Prepared] = OrderedDict()
        self._outdated: list[bytes] = []

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
        with self.connection.lock:
            first = self.set_local if self.set_local and self.is_idle() else ()
            bound: list[Bound] = []
            try:
                bound = self._bind_known([*first, *statements])
                results = self._execute(bound)
            except OUTDATED as error:
                self.forget([each.prepared for each in bound], error)
                if is_refused_by_standby(error) or not self.is_idle():
                    raise
                bound = self._bind_known([*first, *statements])
                results = self._execute(bound)
            # Perhaps committed: an error from here on must not run a statement again, whatever it is.
            return load_rows(bound[len(first) :], results[len(first) :])

    def bind(self, sql: str, values: Sequence[object]) -> Bound:
        """A statement with its values.

        Raises:
            Exception: as psycopg's dumpers raise it for a value that cannot be sent.
        """
        dumps = self._dumps
        given = dumps.dump_sequence(values, [PyFormat.AUTO] * len(values))
        formats, key = dumps.formats, (sql, dumps.types or ())
        prepared = self._prepared.get(key)
        if prepared is None:
            query = PostgresQuery(Transformer(self.connection))
            query.convert(sql, values)
            name = f"{self._name}_{next(_numbers)}".encode()
            prepared = self._prepared[key] = Prepared(key, name, query.query)
        self._prepared.move_to_end(key)
        return Bound(prepared, given, formats)

    def send(self, bound: Bound | bytes) -> None:
        """Hands a statement to libpq: a prepared one, or a command without values."""
        if isinstance(bound, bytes):
            self._pgconn.send_query_params(bound, None)
        else:
            prepared, values, formats = bound
            self._pgconn.send_query_prepared(prepared.name, values, formats, prepared.format)

    def send_preparation(self, prepared: Prepared) -> None:
        """Has the server prepare a statement, and tell its columns, in pipeline mode."""
        self._pgconn.send_prepare(prepared.name, prepared.query, prepared.types)
        self._pgconn.send_describe_prepared(prepared.name)
        prepared.is_sent = True

    def forget(self, prepared: Sequence[Prepared], error: Error) -> None:
        """Has statements be prepared again that the server does not know, or not in their present form.

        Args:
            prepared: the statements.
            error: what the server said of them.
        """
        for each in prepared:
            if self._prepared.pop(each.key, None) and isinstance(error, FeatureNotSupported):
                self._outdated.append(each.name)

    def take_superfluous(self) -> bytes | None:
        """The name of a statement for the server to forget: one that is outdated, or that is more than it may know."""
        while len(self._prepared) > MAX_STATEMENTS:
            _, prepared = self._prepared.popitem(last=False)
            if prepared.is_sent:
                self._outdated.append(prepared.name)
        return self._outdated.pop() if self._outdated else None

    def send_close(self, name: bytes) -> None:
        """Has the server forget a statement: by the protocol, which a pooler understands, and not by DEALLOCATE."""
        self._pgconn.send_close_prepared(name)

    def _bind_known(self, statements: Sequence[Statement]) -> list[Bound]:
        bound = [self.bind(*statement) for statement in statements]
        for each in bound:
            if not each.prepared.is_sent:
                self._prepare(each.prepared)
        return bound

    def _prepare(self, prepared: Prepared) -> None:
        if name := self.take_superfluous():
            self.send_close(name)
            self._results()
        try:
            self._pgconn.send_prepare(prepared.name, prepared.query, prepared.types)
            self._results()
            self._pgconn.send_describe_prepared(prepared.name)
            (columns,) = self._results()
        except Error:
            self._prepared.pop(prepared.key, None)
            raise
        prepared.is_sent = True
        prepared.describe(columns, self.connection)

    def _execute(self, bound: Sequence[Bound]) -> Sequence[PGresult]:
        begin = not self.connection.autocommit and self.is_idle()
        if not begin and len(bound) == 1:
            self.send(bound[0])
            return self._results()
        # As psycopg does before the first statement of a transaction.
        before = [self.connection._get_tx_start_command()] if begin else []
        results = self._send_pipeline([*before, *bound])
        # Also of BEGIN.
        raise_error(results)
        return results[begin : begin + len(bound)]

    def _send_pipeline(self, commands: Sequence[Bound | bytes]) -> list[PGresult]:
        """What the server answers to commands, which it gets in libpq's pipeline mode.

        Behind one that fails, the others are not run. Outside of a transaction they are done as a whole.
        """
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        try:
            try:
                for one in commands:
                    self.send(one)
                pgconn.pipeline_sync()
            except OperationalError:
                # The server said why, before it closed the connection.
                if reason := pgconn.get_result():
                    raise_error([reason])
                raise
            results = self.connection.wait(_fetch_results(pgconn))
        except BaseException:
            # What is still on its way would be taken for the answer to the next statement.
            self.connection.close()
            raise
        if pgconn.status == ConnStatus.OK:
            pgconn.exit_pipeline_mode()
        return results

    def is_idle(self) -> bool:
        """Whether the connection is in no transaction."""
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def _results(self) -> list[PGresult]:
        """Waits for what was sent; an interrupt cancels it."""
        results = self.connection.wait(generators.execute(self._pgconn))
        raise_error(results)
        return results


def load_unit(unit: Unit, bound: Sequence[Bound], results: Sequence[PGresult]) -> Sequence[list[Rows] | Exception]:
    """What each batch of a unit gets: its rows, or the error that they meet as they are loaded."""
    try:
        rows = load_rows(bound, results)
    except Exception as error:  # noqa: BLE001 - of one batch, while all others have their rows
        return [error] if len(unit.indexes) == 1 else _load_apart(unit, bound[0].prepared, results[0])
    if len(unit.indexes) == 1:
        return [rows]
    made: list[list[Rows] | Exception] = [[[]] for _ in unit.indexes]
    for row in rows[0]:
        made[row[-1]][0].append(row)  # type: ignore[index]  # none is an error
    return made


def _load_apart(unit: Unit, prepared: Prepared, result: PGresult) -> Sequence[list[Rows] | Exception]:
    """Loads one row after the other, so that an error stays with the batch whose row it is."""
    made: list[list[Rows] | Exception] = [[[]] for _ in unit.indexes]
    last = result.nfields - 1
    is_binary = result.fformat(last) == Format.BINARY
    for position in range(result.ntuples):
        number: Any = result.get_value(position, last)
        index = int.from_bytes(number, "big") if is_binary else int(number)
        found = made[index]
        try:
            if not isinstance(found, Exception):
                found[0] += _load(prepared, result, position, position + 1)
        except Exception as error:  # noqa: BLE001 - raised where the batch was submitted
            made[index] = error
    return made


def load_rows(bound: Sequence[Bound], results: Sequence[PGresult]) -> list[Rows]:
    """The rows of each statement."""
    return [_load(each.prepared, result, 0, result.ntuples) for each, result in zip(bound, results, strict=True)]


def _load(prepared: Prepared, result: PGresult, start: int, end: int) -> Rows:
    loads: Any = prepared.loads
    # It was sent before the types of its columns were known.
    is_as_described = not result.nfields or result.fformat(0) == prepared.format
    loads.set_pgresult(result, set_loaders=not is_as_described)
    try:
        rows: Rows = loads.load_rows(start, end, tuple)
        return rows
    finally:
        loads.set_pgresult(None, set_loaders=False)
        if not is_as_described:
            loads.set_loader_types([result.ftype(column) for column in range(result.nfields)], prepared.format)


def _fetch_results(pgconn: PGconn) -> abc.PQGen[list[PGresult]]:
    """The results of commands that were sent in pipeline mode, up to their end or that of the connection.

    Outside of a transaction an error may come behind those of all commands: of a foreign key, when they are committed.
    """
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    while True:
        try:
            while pgconn.is_busy():
                yield Wait.R
                pgconn.consume_input()
        except OperationalError:
            # The server said why, before it closed the connection.
            raise_error(results)
            raise
        result = pgconn.get_result()
        if result is None:
            # So it is behind each command, and where nothing comes any more.
            if pgconn.status == ConnStatus.BAD:
                raise_error(results)
                raise OperationalError("The connection is lost.")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return results
        else:
            results.append(result)


def raise_error(results: Sequence[PGresult]) -> None:
    """Raises the psycopg.Error that is among the results of a group of commands, if there is one."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
