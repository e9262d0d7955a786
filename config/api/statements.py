"""Statements that requests run again and again: written as querysets, compiled once, prepared by the server.

Django compiles a queryset to SQL each time it is read, which takes longer than PostgreSQL takes to run it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, QuerySet, Value
from django.db.models.query import get_related_populators

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
    """

    def __init__(
        self, rows: QuerySet[Any], around: Callable[[str], str] = str, further: Sequence[Parameter] = ()
    ) -> None:
        self._rows = rows
        self._around = around
        self._further = further

    def first(self, **values: Any) -> tuple[Any, Row] | None:
        """The first row and the further columns beside it; None without a row.

        Args:
            values: of the Parameters.
        """
        return next(iter(self.run(**values)), None)

    def run(self, **values: Any) -> list[tuple[Any, Row]]:
        """All rows, each with the further columns beside it."""
        return [(self._instance(row), row[self._width :]) for row in self._found(values)]

    def rows(self, **values: Any) -> list[Any]:
        """All rows, where there are no further columns."""
        return [self._instance(row) for row in self._found(values)]

    def records(self, **values: Any) -> list[Any]:
        """All rows as named tuples of their columns and annotations, which are made in a fraction of the time."""
        found = self._found(values)
        converters = self._converters
        return list(map(self._record, self._compiler.apply_converters(found, converters) if converters else found))

    @cached_property
    def names(self) -> frozenset[str]:
        """What a record knows."""
        return frozenset(self._names)

    def _found(self, values: Mapping[str, Any]) -> Sequence[Row]:
        _, sql, parameters = self._compiled
        return run(sql, (*parameters, *self._further), values) if sql else ()

    @cached_property
    def _compiled(self) -> tuple[Any, str, Sequence[Any]]:
        """Django's compiler, the SQL and the parameters; no SQL where there can be no rows, whatever the tables hold."""
        compiler: Any = self._rows.query.get_compiler(connection=connection)
        try:
            sql, parameters = compiler.as_sql()
        except EmptyResultSet:
            return compiler, "", ()
        return compiler, self._around(sql), parameters

    @cached_property
    def _compiler(self) -> Any:
        return self._compiled[0]

    @cached_property
    def _width(self) -> int:
        """The number of columns that belong to a row of `rows`."""
        return len(self._compiler.select)

    @cached_property
    def _names(self) -> Sequence[str]:
        """Of each column; none for those of related rows."""
        names = [""] * self._width
        for position in self._compiler.klass_info["select_fields"]:
            names[position] = self._compiler.select[position][0].target.attname
        for name, position in self._compiler.annotation_col_map.items():
            names[position] = name
        return names

    @cached_property
    def _converters(self) -> Any:
        return self._compiler.get_converters([expression for expression, *_ in self._compiler.select])

    @cached_property
    def _record(self) -> Callable[[Row], Any]:
        return partial(tuple.__new__, namedtuple("Record", self._names, rename=True))

    @cached_property
    def _instance(self) -> Callable[[Row], Model]:
        return _instances_of(self._compiler)


def run(sql: str, parameters: Sequence[Any], values: Mapping[str, Any]) -> Sequence[Row]:
    """The rows of a prepared statement.

    Args:
        parameters: in the order of the statement, Parameters among them.
        values: of the Parameters.
    """
    given = [values[part.value] if isinstance(part, Parameter) else part for part in parameters]
    found: Sequence[Row] = connection.run(sql, given)  # type: ignore[attr-defined]
    return found


def _instances_of(compiler: Any) -> Callable[[Row], Model]:
    """What makes instances of rows, as Django's ModelIterable does."""
    model, positions = compiler.klass_info["model"], compiler.klass_info["select_fields"]
    own = slice(positions[0], positions[-1] + 1)
    names = [expression.target.attname for expression, *_ in compiler.select[own]]
    alias = connection.alias
    related = get_related_populators(compiler.klass_info, compiler.select, alias)  # type: ignore[call-arg]
    converters = compiler.get_converters([expression for expression, *_ in compiler.select])
    annotations = list(compiler.annotation_col_map.items())

    def instance(row: Row) -> Model:
        if converters:
            (row,) = compiler.apply_converters([row], converters)
        made: Model = model.from_db(alias, names, row[own])
        for populator in related:
            populator.populate(row, made)
        for name, position in annotations:
            setattr(made, name, row[position])
        return made

    return instance
