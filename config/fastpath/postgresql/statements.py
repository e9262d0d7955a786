"""Statements as a connection sends them: those of several requests as one, each parsed once by the server.

Replaces: a statement for each request, each with a transaction of its own where it locks rows. Buys: PostgreSQL begins,
plans, locks and wakes up once for all of them, and triggers of statements run once. Such a statement has one parameter
for all of its values: the rows, as JSON (`GivenRowsDumper`). It numbers them, and tells in its last column which of
them a result belongs to.

Replaces: cursors. Buys: a cursor costs several times what it takes to send a statement and to wait. There is nothing
between a statement and libpq but psycopg's adapters.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple

import orjson
from psycopg import Binary, Connection, abc
from psycopg._queries import PostgresQuery
from psycopg.adapt import Dumper, PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.postgres import types
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

NUMBER = "given_number"

Rows = list[tuple[Any, ...]]


class GivenRows(tuple[Mapping[str, object], ...]):
    """The rows of a statement, each by the names of its columns."""

    __slots__ = ()


class Statement(NamedTuple):
    """A statement of a request.

    Attributes:
        sql: with `%s` for each value.
        values: given rows first, if it has any.
        shared_transaction: whether others may run in the same transaction. It costs less than one for each; but of two
            that lock the same rows in different orders one would fail.
        is_alone: whether it is made one with no other statement, and shares no transaction.
    """

    sql: str
    values: Sequence[Any]
    shared_transaction: bool = False
    is_alone: bool = False


class Unit(NamedTuple):
    """What is sent of one statement, or of several that are made one.

    Attributes:
        indexes: of the statements, in the order of their given rows.
        statement: of all of them.
    """

    indexes: Sequence[int]
    statement: Statement


def unite(statements: Sequence[Statement]) -> list[Unit]:
    """What is sent of statements, in the order of the first of each unit."""
    alike: dict[object, list[int]] = {}
    for index, statement in enumerate(statements):
        alike.setdefault(_get_form(statement) or index, []).append(index)
    return [Unit(indexes, _join([statements[index] for index in indexes])) for indexes in alike.values()]


def _get_form(statement: Statement) -> object:
    """What statements that can be one have in common; None for one that stays by itself."""
    sql, values, shared_transaction, is_alone = statement
    if is_alone or not values or type(values[0]) is not GivenRows or len(values[0]) != 1:
        return None
    form = (sql, *values[1:], shared_transaction)
    try:
        hash(form)
    except TypeError:
        # A constant such as a list.
        return None
    return form


def _join(statements: Sequence[Statement]) -> Statement:
    first = statements[0]
    if len(statements) == 1:
        return first
    rows = GivenRows(row for statement in statements for row in statement.values[0])
    return first._replace(values=[rows, *first.values[1:]])


def build_given(columns: Mapping[str, str]) -> str:
    """A common table expression `given` of the rows, which PostgreSQL keeps only where it is read more than once.

    Args:
        columns: the names of its columns, each with its type.
    """
    defined = ", ".join(f'"{name}" {kind}' for name, kind in {NUMBER: "integer", **columns}.items())
    return f"given AS (SELECT * FROM json_to_recordset(%s) AS given ({defined}))"  # noqa: S608 - of names


def bind_given(sql: str, names: Iterable[str | None]) -> str:
    """SQL whose placeholders are columns of `given`.

    Args:
        sql: with `%s` for each value.
        names: of the columns, in the order of the placeholders; None for one that stays.
    """
    first, *parts = sql.split("%s")
    columns = ["%s" if name is None else f'given."{name}"' for name in names]
    return first + "".join(column + part for column, part in zip(columns, parts, strict=True))


# --- Those of one connection

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

# The text of a statement, and the types of its values.
_Key = tuple[str, tuple[int, ...]]

# Numbers for names, never used twice: a connection may still know a statement that is forgotten here.
_numbers = count()


class Prepared:
    """A statement that the server knows, or will.

    Attributes:
        query: its text as PostgreSQL reads it; `types` are the types of its values.
        is_sent: whether it was sent to the server.
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
        """The rows with their numbers, from 0."""
        return orjson.dumps([{**row, NUMBER: number} for number, row in enumerate(rows)], default=_to_text)


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
    """

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        # PgBouncer before 1.21 gives all clients the names of each other: better unknown than another one's.
        self._name = f"fastpath_{secrets.token_hex(8)}"
        self._pgconn = connection.pgconn
        self._dumps = Transformer(connection)
        self._prepared: OrderedDict[_Key, Prepared] = OrderedDict()
        self._outdated: list[bytes] = []

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

    def send(self, bound: Bound) -> None:
        """Hands a prepared statement to libpq."""
        prepared, values, formats = bound
        self._pgconn.send_query_prepared(prepared.name, values, formats, prepared.format)

    def send_preparation(self, prepared: Prepared) -> None:
        """Has the server prepare a statement and tell its columns, and forget one, by the protocol, for a pooler."""
        if name := self._take_superfluous():
            self._pgconn.send_close_prepared(name)
        self._pgconn.send_prepare(prepared.name, prepared.query, prepared.types)
        self._pgconn.send_describe_prepared(prepared.name)
        prepared.is_sent = True

    def forget(self, prepared: Sequence[Prepared]) -> None:
        """Has statements be prepared again of which the server does not know one, or not in its present form.

        All are closed (to close what the server does not know is no error): it tells of the first of them alone.
        """
        for each in prepared:
            if self._prepared.pop(each.key, None):
                self._outdated.append(each.name)

    def _take_superfluous(self) -> bytes | None:
        """The name of a statement for the server to forget: one that is outdated, or that is more than it may know."""
        while len(self._prepared) > MAX_STATEMENTS:
            _, prepared = self._prepared.popitem(last=False)
            if prepared.is_sent:
                self._outdated.append(prepared.name)
        return self._outdated.pop() if self._outdated else None


def load_unit(unit: Unit, prepared: Prepared, result: PGresult) -> Sequence[Rows | Exception]:
    """What each statement of a unit gets: its rows, or the error that they meet as they are loaded."""
    count = len(unit.indexes)
    try:
        rows = _load(prepared, result, 0, result.ntuples)
    except Exception as error:  # noqa: BLE001 - of one statement, while all others have their rows
        return [error] if count == 1 else _load_apart(count, prepared, result)
    if count == 1:
        return [rows]
    made: list[Rows | Exception] = [[] for _ in range(count)]
    for row in rows:
        made[row[-1]].append(row)  # type: ignore[union-attr]  # none is an error
    return made


def _load_apart(count: int, prepared: Prepared, result: PGresult) -> Sequence[Rows | Exception]:
    """Loads one row after the other, so that an error stays with the statement whose row it is."""
    made: list[Rows | Exception] = [[] for _ in range(count)]
    last = result.nfields - 1
    is_binary = result.fformat(last) == Format.BINARY
    for position in range(result.ntuples):
        number: Any = result.get_value(position, last)
        index = int.from_bytes(number, "big") if is_binary else int(number)
        found = made[index]
        try:
            if not isinstance(found, Exception):
                found += _load(prepared, result, position, position + 1)
        except Exception as error:  # noqa: BLE001 - raised where the statement was submitted
            made[index] = error
    return made


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


def raise_error(results: Sequence[PGresult]) -> None:
    """Raises the psycopg.Error that is among the results of a group of commands, if there is one."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
