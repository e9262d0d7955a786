"""Statements that requests run again and again: written as querysets, compiled once, prepared by the server.

Django compiles a queryset to SQL each time it is read, which takes longer than PostgreSQL takes to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Exists, Model, QuerySet, Subquery, Value
from django.db.models.expressions import Col, RawSQL
from django.db.models.fields.related_lookups import RelatedExact
from django.db.models.fields.tuple_lookups import (
    Tuple,
    TupleGreaterThan,
    TupleGreaterThanOrEqual,
    TupleLessThan,
    TupleLessThanOrEqual,
)
from django.db.models.lookups import BuiltinLookup, Exact, In, IntegerFieldExact, IsNull
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
        further: the parameters that it has behind those of `rows`.
    """

    def __init__(
        self, rows: QuerySet[Any], around: Callable[[str], str] = str, further: Sequence[Parameter] = ()
    ) -> None:
        self._rows = rows
        self._around = around
        self._further = further
        self._compiled: _Compiled | None = None

    def first(self, **values: Any) -> tuple[Any, Row] | None:
        """The first row and the further columns beside it; None without a row.

        Args:
            values: of the Parameters.
        """
        return next(iter(self.run(**values)), None)

    def run(self, **values: Any) -> list[tuple[Any, Row]]:
        """All rows, each with the further columns beside it."""
        compiled = self._compiled = self._compiled or _Compiled(self._rows, self._around)
        parts = (*compiled.parameters, *self._further)
        found = compiled.run([values[part.value] if isinstance(part, Parameter) else part for part in parts])
        return [(compiled.instance(row), row[compiled.width :]) for row in found]


class _Compiled:
    """The SQL of a queryset, and how its rows become instances.

    Attributes:
        width: the number of columns that belong to an instance.
        instance: what makes one of a row.
    """

    def __init__(self, rows: QuerySet[Any], around: Callable[[str], str] = str) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        sql, self.parameters = compiler.as_sql()
        self.sql = around(sql)
        self.width = len(compiler.select)
        self._compiler = compiler

    @cached_property
    def instance(self) -> Callable[[Row], Model]:
        made = _instances_of(self._compiler)
        # With the query that it was made for it is larger than all else that is kept of a shape.
        del self._compiler
        return made

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

    convert = compiler.apply_converters if converters else None

    def instance(row: Row) -> Model:
        if convert:
            (row,) = convert([row], converters)
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


# What is yielded of a query below, as its shape.
_READ = {
    *("model", "alias_cols", "alias_refcount", "subquery", "default_cols", "select_related"),
    *("select", "values_select", "order_by", "default_ordering", "low_mark", "high_mark"),
    *("select_for_update", "select_for_update_of", "select_for_no_key_update"),
    *("combinator", "combinator_all", "combined_queries", "annotations", "where"),
}
# What follows from that, and traces of the query's making.
_TRACES = {
    *("selected", "extra_select_mask", "annotation_select_mask", "_annotation_select_cache"),
    *("alias_map", "table_map", "used_aliases", "base_table", "alias_prefix", "subq_aliases", "external_aliases"),
    *("_lookup_joins", "filter_is_sticky"),
}


class _UnknownShapeError(Exception):
    pass


def fetch(rows: QuerySet[Any]) -> list[Any]:
    """The rows of a queryset, which is not compiled if one of the same shape was before.

    Shapes are known of querysets of whole rows of one table and of what `select_related` adds, with annotations of
    plain SQL and of subqueries, under comparisons with values and EXISTS, in an order, within limits, and of unions of
    these: the shape is all that is in their SQL, and the values are its parameters. Every other one is read as Django
    does.
    """
    try:
        if rows._iterable_class is not ModelIterable:
            raise _UnknownShapeError
        shape = _Shape(rows)
        compiled = _compiled(shape)
    except (_UnknownShapeError, EmptyResultSet):
        return list(rows)
    return [compiled.instance(row) for row in compiled.run(shape.values)]


def sql_of(rows: QuerySet[Any]) -> tuple[str, Sequence[Any]]:
    """The SQL of a queryset, to be put into another statement, and its parameters.

    Raises:
        EmptyResultSet: there are no such rows, whatever the tables hold.
    """
    try:
        shape = _Shape(rows)
        return _compiled(shape).sql, shape.values
    except _UnknownShapeError:
        return rows.query.sql_with_params()


class _Shape:
    """A query to be compiled, known by its shape alone.

    Attributes:
        values: those of its parameters, in the order of the statement.

    Raises:
        _UnknownShapeError: there is something in the query that is not looked at here.
    """

    def __init__(self, rows: Any) -> None:
        if rows._prefetch_related_lookups or rows._known_related_objects:
            raise _UnknownShapeError
        self.query: Query = rows.query
        self.values: list[Any] = []
        self._compiler = rows.query.get_compiler(connection=connection)
        self._facts = tuple(self._of_query(rows.query))

    def __hash__(self) -> int:
        return hash(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and self._facts == other._facts

    def _of_query(self, query: Any) -> Iterator[Any]:
        used = [alias for alias, uses in query.alias_refcount.items() if uses]
        if len(used) > 1 or len(query.annotation_select) < len(query.annotations):
            raise _UnknownShapeError
        if not all(isinstance(name, str) for name in query.order_by):
            raise _UnknownShapeError
        for name, value in vars(query).items():
            # What a query has no other value for is empty when it is not used.
            beyond = name not in _READ and name not in _TRACES
            if beyond and (value != getattr(Query, name) if hasattr(Query, name) else value):
                raise _UnknownShapeError
        yield from (query.model, query.alias_cols, *used, query.subquery, query.default_cols, str(query.select_related))
        for column in query.select:
            yield from _columns(column)
        yield from (query.values_select, query.order_by, query.default_ordering, query.low_mark, query.high_mark)
        yield from (query.select_for_update, query.select_for_update_of, query.select_for_no_key_update)
        yield from (query.combinator, query.combinator_all, len(query.combined_queries))
        if query.combined_queries:
            # The condition is in the parts alone.
            if query.annotations:
                raise _UnknownShapeError
            for part in query.combined_queries:
                yield from self._of_query(part)
            return
        for name, annotation in query.annotations.items():
            yield name
            yield from self._of_annotation(annotation)
        yield from self._of_condition(query.where)

    def _of_annotation(self, annotation: Any) -> Iterator[Any]:
        kind = type(annotation)
        yield kind
        if kind is RawSQL:
            yield from (annotation.sql, type(annotation.output_field))
            self.values += annotation.params
        elif kind is Value and type(annotation.value) is int:
            # EXISTS selects a number.
            self.values.append(annotation.value)
        elif isinstance(annotation, Subquery):
            yield from self._of_subquery(annotation)
        else:
            raise _UnknownShapeError

    def _of_subquery(self, expression: Subquery) -> Iterator[Any]:
        if expression.extra:
            raise _UnknownShapeError
        yield expression.template
        yield from self._of_query(expression.query)

    def _of_condition(self, node: WhereNode) -> Iterator[Any]:
        yield from (node.connector, node.negated, len(node.children))
        children: list[Any] = node.children
        for child in children:
            kind = type(child)
            yield kind
            if kind is WhereNode:
                yield from self._of_condition(child)
            elif kind is Exact and type(child.lhs) is Exists and child.rhs is True:
                # Which says EXISTS alone.
                yield from self._of_subquery(child.lhs)
            else:
                yield from self._of_comparison(child, kind)

    def _of_comparison(self, comparison: Any, kind: type[Any]) -> Iterator[Any]:
        if not isinstance(comparison, BuiltinLookup):
            raise _UnknownShapeError
        yield from _columns(comparison.lhs)
        if kind is IsNull:
            yield comparison.rhs
        elif type(comparison.rhs) is RawSQL:
            yield comparison.rhs.sql
            self.values += comparison.rhs.params
        elif kind is In and isinstance(comparison.rhs, Query):
            yield from self._of_query(comparison.rhs)
        elif kind in _COMPARISONS and comparison.rhs_is_direct_value() and not isinstance(comparison.rhs, bool):
            self.values += comparison.process_rhs(self._compiler, connection)[1]
        else:
            raise _UnknownShapeError


@lru_cache(maxsize=_SHAPES)
def _compiled(shape: _Shape) -> _Compiled:
    made = _Compiled(QuerySet(shape.query.model, query=shape.query))
    if list(made.parameters) != shape.values:
        raise _UnknownShapeError
    # The shape is kept as the key, for which its facts are enough.
    del shape.query, shape._compiler
    return made


def _columns(expression: Any) -> Iterator[Any]:
    for column in expression.get_source_expressions() if isinstance(expression, Tuple) else (expression,):
        if not isinstance(column, Col):
            raise _UnknownShapeError
        yield from (column.alias, column.target)
