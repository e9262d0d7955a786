"""Rows that are added by one statement, once the response about them is made.

Replaces: `save()` in a transaction, and the record of an idempotency key beside it. Buys: a POST waits twice for the
database instead of five to seven times, and several of them share a COMMIT. What fails before the statement leaves no
row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from django.db import models
from django.db.models import QuerySet, signals
from django.db.models.base import ModelState
from django.db.models.sql import InsertQuery

from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.prepared_statements import Statement

# Types whose values Django sends as they are, by the classes of fields.
_UNCHANGED: Mapping[type, type] = {
    models.BigAutoField: int,
    models.CharField: str,
    models.EmailField: str,
    models.TextField: str,
    models.DateTimeField: datetime,
}
# They return the attribute as it is, but for `auto_now` and `auto_now_add`.
_STOCK_PRE_SAVE = {each.pre_save for each in (models.Field, models.DateField, models.DateTimeField, models.TimeField)}
_LENGTH = re.compile(r"\([^)]*\)")


@dataclass(frozen=True, slots=True)
class DeferredInsert:
    """A row that is still to be added, of which all is known, also what the database gives to new rows.

    Attributes:
        row: the model instance.
    """

    row: models.Model
    _insert: "_Insert"
    _alias: str

    def commit(self, guard: Statement) -> bool:
        """Adds the row by one statement, a transaction by itself. Returns whether it did.

        Args:
            guard: the beginning of the statement, with a common table expression `guard` that has a row where the row
                shall be added.
        """
        connection, insert = get_connection(self._alias), self._insert
        before, values = guard
        statement = f"{before} {insert.sql} FROM guard RETURNING 1"
        bound = [*values, *_get_values(self.row, insert.fields, connection)]
        (added,) = connection.run((statement, bound), shared_transaction=True)
        self.row._state.adding = not added
        return bool(added)


def reserve(
    model: Any, values: Mapping[str, Any], alias: str, not_exists: Statement | None = None
) -> DeferredInsert | None:
    """Takes an id and the database's defaults for a new row.

    Args:
        model: of which `supports` says that it can be added so.
        values: by names of columns, and no expressions.
        alias: of the database.
        not_exists: selects a row where none shall be added.

    Returns:
        the row to be; None where `not_exists` selects a row.
    """
    insert = _get_insert(model, frozenset(values), alias)
    sql, params = insert.select_defaults
    if not_exists:
        sql, params = f"{sql} WHERE NOT EXISTS ({not_exists[0]})", [*params, *not_exists[1]]
    (reserved,) = get_connection(alias).run((sql, params), shared_transaction=True)
    if not reserved:
        return None
    row = model.__new__(model)
    attributes = vars(row)
    attributes.update(values, _state=ModelState())
    for field in insert.python_defaults:
        attributes[field.attname] = field.get_default()
    attributes.update(zip(insert.default_names, reserved[0], strict=True))
    row._state.db = alias
    return DeferredInsert(row, insert, alias)


def supports(model: Any, names: frozenset[str], alias: str) -> bool:
    """Whether to add a row with values for these columns is one INSERT, and nothing else, that needs no conversion."""
    has_receivers = signals.pre_save.receivers or signals.post_save.receivers
    has_receivers = has_receivers or signals.pre_init.receivers or signals.post_init.receivers
    return not has_receivers and _is_plain(model, names, alias)


@lru_cache(maxsize=1024)
def _is_plain(model: Any, names: frozenset[str], alias: str) -> bool:
    meta, manager, fields = model._meta, model._default_manager, model._meta.local_concrete_fields
    if any(getattr(model, name) is not getattr(models.Model, name) for name in ("__init__", "save", "save_base")):
        return False
    if type(manager).create is not models.Manager.create or type(manager.all()).create is not QuerySet.create:
        return False
    if meta.parents or meta.order_with_respect_to or not names <= {field.attname for field in fields}:
        return False
    if any(map(_has_value_of_save, fields)):
        return False
    compiler: Any = InsertQuery(model).get_compiler(alias)
    columns = [field.get_col(meta.db_table) for field in meta.db_returning_fields]
    return bool(columns) and not compiler.get_converters(columns)


def _has_value_of_save(field: Any) -> bool:
    """Whether the value of a field is made when its row is saved, which is after the response."""
    is_automatic = field.generated or getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return is_automatic or type(field).pre_save not in _STOCK_PRE_SAVE


@dataclass(frozen=True, slots=True)
class _Insert:
    """The INSERT of a row of which some columns are given.

    Attributes:
        select_defaults: selects what the database gives to a new row.
        default_names: the names of these columns.
        python_defaults: the fields whose defaults Python gives.
        sql: the INSERT, up to where it would say under which condition.
        fields: whose values it takes, in this order, each with the type of values that are sent as they are.
    """

    select_defaults: Statement
    default_names: Sequence[str]
    python_defaults: Sequence[Any]
    sql: str
    fields: Sequence[tuple[Any, type | None]]


@lru_cache(maxsize=1024)
def _get_insert(model: Any, names: frozenset[str], alias: str) -> _Insert:
    connection, meta = get_connection(alias), model._meta
    concrete = meta.local_concrete_fields
    from_database = [field for field in meta.db_returning_fields if field.attname not in names]
    from_python = [field for field in concrete if field.attname not in names and field not in from_database]
    given = [field for field in concrete if field not in from_database]
    query: Any = InsertQuery(model)
    query.insert_values(given, [SimpleNamespace(**{field.attname: None for field in given})], raw=True)
    compiler = query.get_compiler(connection=connection)
    selected: list[str] = []
    params: list[Any] = []
    for field in from_database:
        sql, values = _compile_default(field, compiler)
        selected.append(sql)
        params += values
    fields, quote = [*from_database, *given], connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    # The types without their lengths: a cast to one with a length cuts off what is longer.
    casts = ", ".join(f"%s::{_LENGTH.sub('', field.db_type(connection))}" for field in fields)
    targets = [field.target_field if type(field) is models.ForeignKey else field for field in fields]
    return _Insert(
        (f"SELECT {', '.join(selected)}", params),
        [field.attname for field in from_database],
        from_python,
        f"INSERT INTO {quote(meta.db_table)} ({columns}) SELECT {casts}",
        [(field, _UNCHANGED.get(type(target))) for field, target in zip(fields, targets, strict=True)],
    )


def _compile_default(field: Any, compiler: Any) -> tuple[str, Sequence[Any]]:
    if field is field.model._meta.auto_field:
        table = compiler.connection.ops.quote_name(field.model._meta.db_table)
        return "nextval(pg_get_serial_sequence(%s, %s))", [table, field.column]
    compiled: tuple[str, Sequence[Any]] = compiler.compile(field._db_default_expression)
    return compiled


def _get_values(row: models.Model, fields: Sequence[tuple[Any, type | None]], connection: Any) -> list[Any]:
    columns, adding = vars(row), row._state.adding
    return [
        value
        if type(value := columns.get(field.attname)) is unchanged
        else field.get_db_prep_save(field.pre_save(row, adding), connection)
        for field, unchanged in fields
    ]
