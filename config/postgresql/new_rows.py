"""New rows with all that PostgreSQL gives to them, known before they are added."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db import connections, router
from django.db.models import Model, Value
from django.db.models.sql import InsertQuery
from django.db.models.sql.compiler import SQLCompiler

from config.postgresql.compiling import fetch_rows

AnyModel = TypeVar("AnyModel", bound=Model)


def build_rows(model: type[AnyModel], many: Sequence[Mapping[str, object]]) -> list[AnyModel]:
    """New rows, which are still to be added, with ids in their order and the defaults of the database.

    Without expressions among their values, Django adds them by one statement of a few arrays, whatever their number.

    Args:
        model: of the rows.
        many: the values of each row.
    """
    connection, meta = connections[router.db_for_write(model)], model._meta
    compiler = InsertQuery(model).get_compiler(connection=connection)
    fields: Sequence[Any] = meta.db_returning_fields
    compiled = [compile_default(field, compiler) for field in fields]
    selected = ", ".join(sql for sql, _ in compiled)
    params: list[Any] = [value for _, values in compiled for value in values]
    sql = f"SELECT {selected} FROM generate_series(1, %s)"  # noqa: S608 - of columns
    defaults = fetch_rows(sql, [*params, len(many)], connection.alias)
    names = [field.attname for field in fields]
    return [
        model(**dict(zip(names, given, strict=True)), **values) for given, values in zip(defaults, many, strict=True)
    ]


def compile_default(field: Any, compiler: SQLCompiler) -> tuple[str, Sequence[object]]:
    """The database default of a column, as an SQL expression with its parameters."""
    if field is field.model._meta.auto_field:
        table = compiler.connection.ops.quote_name(field.model._meta.db_table)
        # Looked up once for a statement, not for each of its rows.
        return "nextval((SELECT pg_get_serial_sequence(%s, %s)))", [table, field.column]
    default = field.db_default
    expression = default if hasattr(default, "resolve_expression") else Value(default, field)
    return compiler.compile(expression)
