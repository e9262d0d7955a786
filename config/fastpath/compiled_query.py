"""Statements that requests run again and again: written as querysets, compiled once, prepared by the server.

Django compiles a queryset to SQL each time it is read, which takes longer than PostgreSQL takes to run it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, QuerySet, Value
from django.db.models.query import get_related_populators

from config.fastpath.postgresql.base import database

Row = Sequence[Any]


class Parameter(Value):
    """Stands in a queryset for a value that each run of its statement brings under this name."""

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


class Statement:
    """A queryset of whole rows, compiled at its first use and then kept for the life of the process.

    What it is made of is read once: the present time is `Now()`, and not Python's.

    Args:
        rows: the queryset, which `select_related` and annotations may widen.
        around: puts the SQL of `rows` into a greater statement, which may give further columns behind those of a row.
        further: the parameters that it has behind those of `rows`.
        writes: whether the greater statement writes rows that others write too.
    """

    def __init__(
        self,
        rows: QuerySet[Any],
        around: Callable[[str], str] = str,
        further: Sequence[Parameter] = (),
        *,
        writes: bool = False,
    ) -> None:
        self._rows: QuerySet[Any] | None = rows
        self._writes = writes
        self._around = around
        self._further = further

    def first(self, **values: Any) -> tuple[Any, Row] | None:
        """The first row and the further columns beside it; None without a row.

        Args:
            values: of the Parameters.
        """
        rows = self.read(self._found(values))
        return rows[0] if rows else None

    def run(self, **values: Any) -> list[tuple[Any, Row]]:
        """All rows, each with the further columns beside it."""
        return self.read(self._found(values))

    def asked(self, **values: Any) -> tuple[str, Sequence[Any]]:
        """The SQL and its values, to be run with others at once; `read` makes of its rows what `run` gives."""
        compiled = self._compiled
        return compiled.sql, _given(compiled.parameters, values)

    def read(self, rows: Sequence[Row]) -> list[tuple[Any, Row]]:
        instance, width = self._compiled.instance, self._compiled.width
        return [(instance(row), row[width:]) for row in rows]

    def rows(self, **values: Any) -> list[Any]:
        """All rows, where there are no further columns."""
        return list(map(self._compiled.instance, self._found(values)))

    def records(self, **values: Any) -> list[Any]:
        """All rows as named tuples of their columns and annotations, which are made in a fraction of the time."""
        return list(map(self._compiled.record, self._compiled.converted(self._found(values))))

    @property
    def names(self) -> frozenset[str]:
        """What a record knows."""
        return self._compiled.names

    def _found(self, values: Mapping[str, Any]) -> Sequence[Row]:
        compiled = self._compiled
        if not compiled.sql:
            return ()
        return run(compiled.sql, compiled.parameters, values, may_share=not self._writes)

    @cached_property
    def _compiled(self) -> _Compiled:
        # Of two threads that come at once each may compile it, and the last one finds it compiled.
        rows, made = self._rows, vars(self)
        if rows is not None:
            made["_compiled"] = _Compiled(rows, self._around, self._further)
            # With its query a statement is larger than all else that is kept.
            self._rows = None
        compiled: _Compiled = made["_compiled"]
        return compiled


class _Compiled:
    """What is kept of a queryset.

    Attributes:
        sql: empty where there can be no such rows, whatever the tables hold.
        parameters: in its order, Parameters among them.
        width: the number of columns that belong to a row.
        names: of these columns and annotations, but for those of related rows.
        instance: makes a model's instance of a row.
        record: makes a named tuple of a row that was converted.
    """

    def __init__(self, rows: QuerySet[Any], around: Callable[[str], str], further: Sequence[Parameter]) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        self.sql, self.parameters = "", further
        try:
            sql, parameters = compiler.as_sql()
            self.sql, self.parameters = around(sql), (*parameters, *further)
        except EmptyResultSet:
            pass
        self.width = len(compiler.select)
        names = [""] * self.width
        for position in compiler.klass_info["select_fields"]:
            names[position] = compiler.select[position][0].target.attname
        for name, position in compiler.annotation_col_map.items():
            names[position] = name
        kind: Any = namedtuple("Record", names, rename=True)  # type: ignore[misc]  # for names known only now
        # A name that no tuple can have has become another one.
        self.names: frozenset[str] = frozenset(kind._fields)
        self.record: Callable[[Row], Any] = partial(tuple.__new__, kind)
        converters = compiler.get_converters([expression for expression, *_ in compiler.select])
        self._convert = partial(compiler.apply_converters, converters=converters) if converters else None
        self.instance = self._instances(compiler)

    def converted(self, rows: Sequence[Row]) -> Iterable[Row]:
        """Rows whose values are those that their fields make of the database's."""
        return self._convert(rows) if self._convert else rows

    def _instances(self, compiler: Any) -> Callable[[Row], Model]:
        """What makes instances of rows, as Django's ModelIterable does."""
        model, positions = compiler.klass_info["model"], compiler.klass_info["select_fields"]
        own = slice(positions[0], positions[-1] + 1)
        names = [expression.target.attname for expression, *_ in compiler.select[own]]
        alias, convert = connection.alias, self._convert
        related = get_related_populators(compiler.klass_info, compiler.select, alias)  # type: ignore[call-arg]
        annotations = list(compiler.annotation_col_map.items())

        def instance(row: Row) -> Model:
            if convert:
                (row,) = convert([row])
            made: Model = model.from_db(alias, names, row[own])
            for populator in related:
                populator.populate(row, made)
            for name, position in annotations:
                setattr(made, name, row[position])
            return made

        return instance


def run(sql: str, parameters: Sequence[Any], values: Mapping[str, Any], *, may_share: bool = True) -> Sequence[Row]:
    """The rows of a prepared statement.

    Args:
        parameters: in the order of the statement, Parameters among them.
        values: of the Parameters.
    """
    (found,) = database().run((sql, _given(parameters, values)), may_share=may_share)
    return found


def _given(parameters: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
    return [values[part.value] if isinstance(part, Parameter) else part for part in parameters]
