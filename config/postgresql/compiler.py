"""Django's compilers for PostgreSQL, but that an INSERT of one row is compiled once for its table."""

from collections.abc import Sequence
from typing import Any

from django.db.backends.postgresql import compiler
from django.db.models.expressions import DatabaseDefault

SQLAggregateCompiler = compiler.SQLAggregateCompiler
SQLCompiler = compiler.SQLCompiler
SQLDeleteCompiler = compiler.SQLDeleteCompiler
SQLUpdateCompiler = compiler.SQLUpdateCompiler

# The SQL by table, columns, and which of them are left to the database: a few for each model.
_inserts: dict[Any, str] = {}


class SQLInsertCompiler(compiler.SQLInsertCompiler):
    query: Any
    connection: Any
    returning_fields: Any

    def execute_sql(self, returning_fields: Any = None) -> Any:  # type: ignore[override]  # the stubs have the parent's
        """Inserts. The values of one row, in columns without SQL of their own, are the parameters of a kept statement.

        Such a statement is prepared, too: the type of each parameter is that of its column.
        """
        query = self.query
        if len(query.objs) != 1 or not returning_fields or query.on_conflict or query.raw:
            return super().execute_sql(returning_fields)
        values = [self.pre_save_val(field, query.objs[0]) for field in query.fields]
        left_out = tuple(isinstance(value, DatabaseDefault) for value in values)
        given = [
            self.prepare_value(field, value)
            for field, value, left in zip(query.fields, values, left_out, strict=True)
            if not left
        ]
        if any(hasattr(value, "as_sql") for value in given):
            return super().execute_sql(returning_fields)
        self.returning_fields = returning_fields
        return self._insert(given, (query.model, tuple(query.fields), left_out, tuple(returning_fields)))

    def _insert(self, values: Sequence[Any], kept_as: Any) -> Any:
        if kept_as not in _inserts:
            ((_inserts[kept_as], _),) = self.as_sql()
        rows = self.connection.run(_inserts[kept_as], values)
        columns = [field.get_col(self.query.get_meta().db_table) for field in self.returning_fields]
        converters = self.get_converters(columns)
        return list(self.apply_converters(rows, converters)) if converters else rows
