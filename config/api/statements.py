"""Statements that every request runs: written as querysets, compiled once, prepared by the server.

Django compiles a queryset to SQL each time it is read, which takes longer than PostgreSQL takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet, Value
from django.db.models.query import get_related_populators


class Parameter(Value):
    """Stands in a queryset for a value that each run of its statement brings under this name."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


class Statement:
    """A queryset of whole rows, with Parameters for what differs from run to run.

    What else it is made of is read once for the life of the process: the present time is `Now()`, and not Python's.

    Args:
        rows: the queryset, which `select_related` and annotations may widen.
        around: puts the SQL of `rows` into a greater statement, which may give further columns behind those of a row.
    """

    def __init__(self, rows: QuerySet[Any], around: Callable[[str], str] = str) -> None:
        self._rows = rows
        self._around = around

    def first(self, **values: Any) -> tuple[Any, Sequence[Any]] | None:
        """The first row and the further columns beside it; None without a row."""
        sql, parameters = self._sql
        with connection.prepared_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(sql, [values[part.value] if isinstance(part, Parameter) else part for part in parameters])
            found = cursor.fetchone()
        return found and (self._model_of(found), found[self._width :])

    @cached_property
    def _compiler(self) -> Any:
        compiler = self._rows.query.get_compiler(connection=connection)
        compiler.text = compiler.as_sql()
        return compiler

    @cached_property
    def _sql(self) -> tuple[str, Sequence[Any]]:
        sql, parameters = self._compiler.text
        return self._around(sql), parameters

    @cached_property
    def _width(self) -> int:
        return len(self._compiler.select)

    @cached_property
    def _model_of(self) -> Callable[[Sequence[Any]], Model]:
        """Makes an instance of a row, as Django's ModelIterable does."""
        compiler = self._compiler
        database, model, positions = (
            connection.alias,
            compiler.klass_info["model"],
            compiler.klass_info["select_fields"],
        )
        own = slice(positions[0], positions[-1] + 1)
        names = [expression.target.attname for expression, *_ in compiler.select[own]]
        related = get_related_populators(compiler.klass_info, compiler.select, database)
        converters = compiler.get_converters([expression for expression, *_ in compiler.select])
        annotations = list(compiler.annotation_col_map.items())

        def model_of(row: Sequence[Any]) -> Model:
            (row,) = compiler.apply_converters([row], converters) if converters else (row,)
            instance = model.from_db(database, names, row[own])
            for populator in related:
                populator.populate(row, instance)
            for name, position in annotations:
                setattr(instance, name, row[position])
            return instance

        return model_of
