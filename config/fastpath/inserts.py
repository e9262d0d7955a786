"""Statements that write one row, compiled once for the columns that are given and prepared for each connection.

A prepared statement needs to know the types of its values: here each is that of its column.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, models
from django.db.models import QuerySet, signals
from django.db.models.expressions import RawSQL
from django.db.models.sql import InsertQuery, UpdateQuery

from config.fastpath.postgresql.base import database
from config.fastpath.postgresql.prepared_statements import Statement

_ANY_VALUE = RawSQL("%s", [None])
# What Django makes nothing of where it is of this very type, by the classes of fields.
_UNCHANGED: Mapping[type, type] = {
    models.BigAutoField: int,
    models.CharField: str,
    models.EmailField: str,
    models.TextField: str,
}
_LENGTH = re.compile(r"\([^)]*\)")


class Write(NamedTuple):
    """Writes a row, and reads what has become of it.

    Attributes:
        sql: with `%s` for each value.
        given: the fields whose values it takes, in this order, each with the type of those that are sent as they are.
        returned: the names of the columns that come back.
        defaults: those of the fields that Python has to ask, where nothing was given.
    """

    sql: str
    given: Sequence[tuple[Any, type | None]]
    returned: Sequence[str]
    defaults: Sequence[Any] = ()

    def run(self, row: models.Model, using: str = DEFAULT_DB_ALIAS) -> tuple[Any, ...]:
        """Writes a row whose values are no SQL. Returns the values of `returned`."""
        connection: Any = database() if using == DEFAULT_DB_ALIAS else connections[using]
        values = _values_of(row, self.given, connection)
        for returned in connection.run((self.sql, values))[0]:
            return returned
        raise DatabaseError("There is no such row.")


class AnsweredAddition(NamedTuple):
    """Adds a row of which all was known before, also what the database gives to new rows: what tells of it is made.

    Attributes:
        given_to_new: selects what the database gives.
        names: those of these columns.
        sql: the INSERT, up to where it would say under which condition.
        given: the fields whose values it takes, as of a Write.
        defaults: those of the fields that Python has to ask, where nothing was given.
    """

    given_to_new: Statement
    names: Sequence[str]
    sql: str
    given: Sequence[tuple[Any, type | None]]
    defaults: Sequence[Any]

    def begin(self, unless: Statement | None) -> tuple[Any, ...] | None:
        """The values of `names` for a new row; None where there is a row of `unless`."""
        sql, values = self.given_to_new
        if unless:
            sql, values = f"{sql} WHERE NOT EXISTS ({unless[0]})", [*values, *unless[1]]
        (found,) = database().run((sql, values), may_share=True)
        return found[0] if found else None

    def run(self, row: models.Model, within: Statement) -> bool:
        """Adds a row. Returns whether it did.

        Args:
            within: the beginning of a statement, whose `condition` has a row where one shall be added.
        """
        connection: Any = database()
        before, values = within
        sql = f"{before} {self.sql} FROM condition RETURNING 1"
        (added,) = connection.run((sql, [*values, *_values_of(row, self.given, connection)]), may_share=True)
        return bool(added)


def _values_of(row: models.Model, given: Sequence[tuple[Any, type | None]], connection: Any) -> list[Any]:
    columns, adding = vars(row), row._state.adding
    return [
        value
        if type(value := columns.get(field.attname)) is unchanged
        else field.get_db_prep_save(field.pre_save(row, adding), connection)
        for field, unchanged in given
    ]


@lru_cache(maxsize=1024)
def insert_of(model: Any, names: frozenset[str]) -> Write | None:
    """The INSERT with values for these columns; the others get the database's defaults.

    None where what comes back must be converted.
    """
    meta = model._meta
    query: Any = InsertQuery(model)
    given = [field for field in meta.local_concrete_fields if field.attname in names]
    query.insert_values(given, [SimpleNamespace(**dict.fromkeys(names))], raw=True)
    compiler = query.get_compiler(DEFAULT_DB_ALIAS)
    compiler.returning_fields = meta.db_returning_fields
    if not meta.db_returning_fields or _is_converted(compiler, meta.db_returning_fields):
        return None
    ((sql, _),) = compiler.as_sql()
    return Write(sql, _taken(given), [field.attname for field in meta.db_returning_fields])


def addition_to(model: Any, names: frozenset[str]) -> Write | None:
    """The INSERT of a row of which these columns are given; None where Django's own way would do more."""
    return None if _is_heard() else _addition_to(model, names)


def answered_addition_to(model: Any, names: frozenset[str]) -> AnsweredAddition | None:
    """What adds a row of which these columns are given; None where Django's own way would do more."""
    return None if _is_heard() else _answered_addition_to(model, names)


def change_of(model: Any, names: frozenset[str]) -> Write | None:
    """The UPDATE of these columns, which returns all there are; None where Django's own way would do more."""
    return None if _is_heard() else _change_of(model, names)


def _is_heard() -> bool:
    """Whether somebody listens to rows being saved, which anybody may begin to do at any time."""
    return bool(signals.pre_save.receivers or signals.post_save.receivers)


@lru_cache(maxsize=1024)
def _addition_to(model: Any, names: frozenset[str]) -> Write | None:
    if not _is_plain(model, names) or type(model._default_manager.all()).create is not QuerySet.create:
        return None
    defaults = [
        field
        for field in model._meta.local_concrete_fields
        if not (field.attname in names or field is model._meta.auto_field or field.has_db_default() or field.generated)
    ]
    insert = insert_of(model, names.union(field.attname for field in defaults))
    return insert and insert._replace(defaults=defaults)


@lru_cache(maxsize=1024)
def _answered_addition_to(model: Any, names: frozenset[str]) -> AnsweredAddition | None:
    plain = _addition_to(model, names)
    if plain is None:
        return None
    connection: Any = database()
    compiler = InsertQuery(model).get_compiler(connection=connection)
    quoted, meta = connection.ops.quote_name, model._meta
    new = [meta.get_field(name) for name in plain.returned if name not in names]
    selected: list[str] = []
    values: list[Any] = []
    for field in new:
        if field is meta.auto_field:
            sql, parameters = "nextval(pg_get_serial_sequence(%s, %s))", [quoted(meta.db_table), field.column]
        else:
            sql, parameters = compiler.compile(field._db_default_expression)
        selected.append(sql)
        values += parameters
    fields = [*new, *(field for field, _ in plain.given)]
    columns = ", ".join(quoted(field.column) for field in fields)
    # The types without their lengths: a cast to one with a length cuts off what is longer.
    given = ", ".join(f"%s::{_LENGTH.sub('', field.db_type(connection))}" for field in fields)
    return AnsweredAddition(
        (f"SELECT {', '.join(selected)}", values),
        [field.attname for field in new],
        f"INSERT INTO {quoted(meta.db_table)} ({columns}) SELECT {given}",
        _taken(fields),
        plain.defaults,
    )


# Clients choose what they change.
@lru_cache(maxsize=1024)
def _change_of(model: Any, names: frozenset[str]) -> Write | None:
    meta = model._meta
    if not _is_plain(model, names) or meta.pk.attname in names:
        return None
    if model.refresh_from_db is not models.Model.refresh_from_db:
        return None
    query: Any = UpdateQuery(model)
    given = [field for field in meta.local_concrete_fields if field.attname in names]
    query.add_update_fields([(field, None, _ANY_VALUE) for field in given])
    query.add_filter("pk", _ANY_VALUE)
    compiler = query.get_compiler(DEFAULT_DB_ALIAS)
    if _is_converted(compiler, meta.local_concrete_fields):
        return None
    sql, _ = compiler.as_sql()
    returning, _ = compiler.connection.ops.return_insert_columns(meta.local_concrete_fields)
    names_read = [field.attname for field in meta.local_concrete_fields]
    return Write(f"{sql} {returning}", _taken([*given, meta.pk]), names_read)


def _taken(fields: Sequence[Any]) -> Sequence[tuple[Any, type | None]]:
    """Fields with the type of values that are sent as they are; a foreign key takes what its target does."""
    targets = [field.target_field if type(field) is models.ForeignKey else field for field in fields]
    return [(field, _UNCHANGED.get(type(target))) for field, target in zip(fields, targets, strict=True)]


def _is_plain(model: Any, names: frozenset[str]) -> bool:
    """Whether `save()` would write these columns of one table, and that is all."""
    meta = model._meta
    columns = {field.attname for field in meta.local_concrete_fields if not field.generated}
    return model.save is models.Model.save and columns >= names and not meta.parents and not meta.order_with_respect_to


def _is_converted(compiler: Any, fields: Sequence[Any]) -> bool:
    """Whether something else than psycopg makes Python's values of these columns."""
    return bool(compiler.get_converters([field.get_col(field.model._meta.db_table) for field in fields]))
