"""Statements that requests run again and again: written as querysets, compiled once, prepared by the server.

Django compiles a queryset to SQL each time it is read, which takes longer than PostgreSQL takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, QuerySet, Value
from django.db.models.expressions import Col, RawSQL
from django.db.models.fields.related_lookups import RelatedExact
from django.db.models.fields.tuple_lookups import (
    Tuple,
    TupleGreaterThan,
    TupleGreaterThanOrEqual,
    TupleLessThan,
    TupleLessThanOrEqual,
)
from django.db.models.lookups import Exact, IntegerFieldExact, IsNull
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import Query
from django.db.models.sql.where import WhereNode

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
    """

    def __init__(self, rows: QuerySet[Any], around: Callable[[str], str] = str) -> None:
        self._rows = rows
        self._around = around
        self._compiled: _Compiled | None = None

    def first(self, **values: Any) -> tuple[Any, Row] | None:
        """The first row and the further columns beside it; None without a row.

        Args:
            values: of the Parameters.
        """
        compiled = self._compiled = self._compiled or _Compiled(self._rows, self._around)
        found = compiled.run(
            [values[part.value] if isinstance(part, Parameter) else part for part in compiled.parameters]
        )
        return (compiled.instance(found[0]), found[0][compiled.width :]) if found else None


class _Compiled:
    """The SQL of a queryset, and how its rows become instances.

    Attributes:
        width: the number of columns that belong to an instance.
    """

    def __init__(self, rows: QuerySet[Any], around: Callable[[str], str] = str) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        sql, self.parameters = compiler.as_sql()
        self.sql = around(sql)
        self.width = len(compiler.select)
        self.instance = _instances_of(compiler)

    def run(self, values: Sequence[Any]) -> Sequence[Row]:
        with connection.prepared_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(self.sql, values)
            found: Sequence[Row] = cursor.fetchall()
            return found


def _instances_of(compiler: Any) -> Callable[[Row], Model]:
    """What makes instances of rows, as Django's ModelIterable does."""
    model, positions = compiler.klass_info["model"], compiler.klass_info["select_fields"]
    own = slice(positions[0], positions[-1] + 1)
    names = [expression.target.attname for expression, *_ in compiler.select[own]]
    related = get_related_populators(compiler.klass_info, compiler.select, connection.alias)  # type: ignore[call-arg]
    converters = compiler.get_converters([expression for expression, *_ in compiler.select])
    annotations = list(compiler.annotation_col_map.items())

    def instance(row: Row) -> Model:
        if converters:
            (row,) = compiler.apply_converters([row], converters)
        made: Model = model.from_db(connection.alias, names, row[own])
        for populator in related:
            populator.populate(row, made)
        for name, position in annotations:
            setattr(made, name, row[position])
        return made

    return instance


# --- Querysets that are made for each request

# Each of them takes one parameter for each value that it compares with.
_COMPARISONS = (
    Exact,
    IntegerFieldExact,
    RelatedExact,
    TupleGreaterThan,
    TupleGreaterThanOrEqual,
    TupleLessThan,
    TupleLessThanOrEqual,
)
# Enough for every list in every order, and so many choices of a limit.
_SHAPES = 512


# What a query has beside its shape: the tables of which it says elsewhere that there is one, and traces of its making.
_BESIDE = {
    *("model", "annotations", "where", "order_by", "default_ordering", "high_mark"),
    *("alias_map", "alias_refcount", "table_map", "used_aliases", "base_table"),
    *("_annotation_select_cache", "_lookup_joins", "filter_is_sticky", "alias_cols"),
}


class _UnknownShapeError(Exception):
    pass


def fetch(rows: QuerySet[Any]) -> list[Any]:
    """The rows of a queryset, which is not compiled if one of the same shape was before.

    Shapes are known of querysets of whole rows of one table, with annotations of plain SQL, under comparisons with
    values, in an order, up to a limit: the shape is all that is in their SQL, and the values are its parameters. Every
    other one is read as Django does.
    """
    comparisons: list[Any] = []
    try:
        shape = _Shape(rows.query, (*_shape_of(rows), *_shape_of_condition(rows.query.where, comparisons)))
        compiler = rows.query.get_compiler(connection=connection)
        # In the order of the statement: what is selected, then the condition.
        annotations: Any = rows.query.annotations.values()
        values = [value for annotation in annotations for value in annotation.params]
        values += [value for one in comparisons for value in one.process_rhs(compiler, connection)[1]]
    except (_UnknownShapeError, EmptyResultSet):
        return list(rows)
    compiled = _compiled(shape)
    return [compiled.instance(row) for row in compiled.run(values)]


class _Shape:
    """A query to be compiled, known by its shape alone."""

    def __init__(self, query: Query, facts: Hashable) -> None:
        self.query, self._facts = query, facts

    def __hash__(self) -> int:
        return hash(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and self._facts == other._facts


@lru_cache(maxsize=_SHAPES)
def _compiled(shape: _Shape) -> _Compiled:
    return _Compiled(QuerySet(shape.query.model, query=shape.query))


def _shape_of(rows: Any) -> Iterator[Hashable]:
    query = rows.query
    if rows._iterable_class is not ModelIterable or rows._prefetch_related_lookups or rows._known_related_objects:
        raise _UnknownShapeError
    used = [alias for alias, uses in query.alias_refcount.items() if uses]
    if len(used) > 1 or not all(isinstance(name, str) for name in query.order_by):
        raise _UnknownShapeError
    for name, value in vars(query).items():
        # What a query has no other value for is empty when it is not used.
        if name not in _BESIDE and (value != getattr(Query, name) if hasattr(Query, name) else value):
            raise _UnknownShapeError
    for name, annotation in query.annotations.items():
        if type(annotation) is not RawSQL:
            raise _UnknownShapeError
        kind: Any = type(annotation.output_field)
        yield from (name, annotation.sql, kind)
    yield from (query.model, query.alias_cols, query.order_by, query.default_ordering, query.high_mark)


def _shape_of_condition(node: WhereNode, comparisons: list[Any]) -> Iterator[Hashable]:
    """The shape of a condition; its comparisons with values are appended, in the order of their parameters."""
    yield from (node.connector, node.negated, len(node.children))
    children: list[Any] = node.children
    for child in children:
        kind = type(child)
        if kind is WhereNode:
            yield from _shape_of_condition(child, comparisons)
            continue
        if kind is IsNull:
            yield child.rhs
        elif kind in _COMPARISONS and child.rhs_is_direct_value() and not isinstance(child.rhs, bool):
            comparisons.append(child)
        else:
            raise _UnknownShapeError
        yield from (kind, *_columns(child.lhs))


def _columns(expression: Any) -> Iterator[Hashable]:
    for column in expression.get_source_expressions() if isinstance(expression, Tuple) else (expression,):
        if not isinstance(column, Col):
            raise _UnknownShapeError
        yield column.target
