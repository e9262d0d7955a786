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
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName
from psycopg.postgres import types
from psycopg.pq import Format
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


def unite(statements: Sequence[Statement]) -> list[tuple[list[int], Statement]]:
    """What is sent of statements: one for those that are alike, whose indexes are in the order of its given rows."""
    alike: dict[object, list[int]] = {}
    for index, statement in enumerate(statements):
        alike.setdefault(_get_form(statement) or index, []).append(index)
    return [(indexes, _join([statements[index] for index in indexes])) for indexes in alike.values()]


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
# As many as psycopg would keep: each takes memory in its server process.
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


class Unit(NamedTuple):
    """What is sent of one statement, or of several that are made one.

    Attributes:
        indexes: of the statements in their flush.
        prepared: what the server knows of them.
        values: of all of them; `formats` are theirs.
    """

    indexes: Sequence[int]
    prepared: Prepared
    values: Any
    formats: Any


class Group(NamedTuple):
    """What the server does as a whole: a transaction, or the preparation of a statement."""

    units: Sequence[Unit] = ()
    prepared: Prepared | None = None


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
        connection: that knows them, a config.fastpath.postgresql.base.LoopConnection.

    Attributes:
        results_before: how many results come before those of the units of a group.
    """

    def __init__(self, connection: Any) -> None:
        self.connection, self.results_before = connection, int(bool(connection.set_local))
        # PgBouncer before 1.21 gives all clients the names of each other: better unknown than another one's.
        self._name = f"fastpath_{secrets.token_hex(8)}"
        self._pgconn = connection.pgconn
        self._dumps = Transformer(connection)
        self._prepared: OrderedDict[_Key, Prepared] = OrderedDict()
        self._outdated: list[bytes] = []

    def build_groups(self, statements: Sequence[Statement]) -> list[Group]:
        """The transactions of a flush. What is not prepared yet is, before all others."""
        own: list[Group] = []
        shared: list[Unit] = []
        new: dict[Prepared, None] = {}
        united = unite(statements)
        for indexes, statement in united:
            try:
                unit = self._bind(indexes, statement.sql, statement.values)
            except Exception:  # noqa: BLE001, S112 - a value that cannot be sent: it is met again where it runs alone
                continue
            if not unit.prepared.is_sent:
                new[unit.prepared] = None
            if statement.shared_transaction and not statement.is_alone:
                shared.append(unit)
            else:
                own.append(Group([unit]))
        if shared:
            own.append(Group(shared))
        # Those of this flush were used last: none of them goes before it is sent.
        while len(self._prepared) > max(MAX_STATEMENTS, len(united)):
            _, superfluous = self._prepared.popitem(last=False)
            self._outdated.append(superfluous.name)
        return [*(Group(prepared=each) for each in new), *own]

    def _bind(self, indexes: Sequence[int], sql: str, values: Sequence[object]) -> Unit:
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
        return Unit(indexes, prepared, given, formats)

    def send(self, group: Group) -> None:
        """Hands a group to libpq. With a preparation, the server forgets a statement, by the protocol, for a pooler."""
        pgconn, (units, new) = self._pgconn, group
        if self.connection.set_local:
            pgconn.send_query_params(self.connection.set_local.encode(), None)
        if new is not None:
            if self._outdated:
                pgconn.send_close_prepared(self._outdated.pop())
            pgconn.send_prepare(new.name, new.query, new.types)
            pgconn.send_describe_prepared(new.name)
            new.is_sent = True
        for _, prepared, values, formats in units:
            pgconn.send_query_prepared(prepared.name, values, formats, prepared.format)
        pgconn.pipeline_sync()

    def forget(self, prepared: Sequence[Prepared]) -> None:
        """Has statements be prepared again of which the server does not know one, or not in its present form.

        All are closed (to close what the server does not know is no error): it tells of the first of them alone.
        """
        for each in prepared:
            if self._prepared.pop(each.key, None):
                self._outdated.append(each.name)


def load_unit(unit: Unit, result: PGresult) -> Sequence[Rows | Exception]:
    """What each statement of a unit gets: its rows, or the error that they meet as they are loaded."""
    prepared, count = unit.prepared, len(unit.indexes)
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
