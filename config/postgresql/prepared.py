"""Statements that the server parses once for a connection, with nothing between them and libpq but psycopg's adapters.

A cursor is made for every use that there is, and costs several times what it takes to send a statement and to wait.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from psycopg import Connection, generators
from psycopg._queries import PostgresQuery
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.postgres import types
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

# As many as psycopg would keep: each takes memory in its server process.
MOST_KEPT = 100
# Columns of these types become the same Python values when they are sent in binary, which is read in a fraction of the
# time. Not so jsonb and inet, which Django wants as text.
_SAME_IN_BINARY = frozenset(
    types[name].oid
    for name in ("bool", "bytea", "date", "float8", "int2", "int4", "int8", "numeric", "text", "timestamptz", "uuid")
) | {types["varchar"].oid, types["text"].array_oid, types["varchar"].array_oid}


# Of names, which never come twice, so that none is taken by a statement that was not heard of any more.
_numbers = count()


@dataclass(frozen=True, slots=True)
class _Prepared:
    name: bytes
    format: Format


class PreparedStatements:
    """Those of one connection, each by its text and the types of its values: what was used last stays.

    The connection must not have a `prepare_threshold`: psycopg deallocates all that there are after a ROLLBACK.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        # What it knows of types and zones is read once for the connection.
        self._transformer = Transformer(connection)
        self._kept: OrderedDict[tuple[str, tuple[int, ...]], _Prepared] = OrderedDict()

    def run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement; none where it has no result.

        Args:
            sql: one statement, with `%s` for each value.

        Raises:
            psycopg.Error: as a cursor raises it.
        """
        with self._connection.lock:
            try:
                return self._run(sql, values)
            except (FeatureNotSupported, InvalidSqlStatementName) as error:
                # A column has had another type since it was prepared, or somebody made the server forget all that was.
                # It is prepared anew; a transaction is lost.
                forgotten = self._kept.pop((sql, self._transformer.types or ()), None)
                if forgotten is None:
                    raise
                if isinstance(error, FeatureNotSupported):
                    self._deallocate(forgotten)
                if not self._is_idle():
                    raise
                return self._run(sql, values)

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if not self._connection.autocommit and self._is_idle():
            # As psycopg does before the first statement of a transaction.
            self._pgconn.send_query(self._connection._get_tx_start_command())
            self._result()
        transformer = self._transformer
        given = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        formats, key = transformer.formats, (sql, transformer.types or ())
        prepared = self._kept.get(key) or self._prepare(key, values)
        self._kept.move_to_end(key)
        self._pgconn.send_query_prepared(prepared.name, given, formats, prepared.format)
        result = self._result()
        transformer.set_pgresult(result)
        try:
            return transformer.load_rows(0, result.ntuples, tuple)
        finally:
            transformer.set_pgresult(None)

    def _prepare(self, key: tuple[str, tuple[int, ...]], values: Sequence[Any]) -> _Prepared:
        while len(self._kept) >= MOST_KEPT:
            self._deallocate(self._kept.popitem(last=False)[1])
        query = PostgresQuery(Transformer(self._connection))
        query.convert(key[0], values)
        name = f"kept_{next(_numbers)}".encode()
        self._pgconn.send_prepare(name, query.query, key[1])
        self._result()
        self._pgconn.send_describe_prepared(name)
        columns = self._result()
        same = all(columns.ftype(column) in _SAME_IN_BINARY for column in range(columns.nfields))
        self._kept[key] = made = _Prepared(name, Format.BINARY if same else Format.TEXT)
        return made

    def _deallocate(self, prepared: _Prepared) -> None:
        self._connection.wait(self._connection._deallocate(prepared.name))

    def _is_idle(self) -> bool:
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def _result(self) -> PGresult:
        """Waits for what was sent; an interrupt cancels it."""
        results = self._connection.wait(generators.execute(self._pgconn))
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results[0]
