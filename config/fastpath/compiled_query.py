"""Querysets that are compiled to SQL once, prepared by the server, and run with other values each time.

Replaces: the evaluation of a queryset. Buys: Django compiles a queryset each time it is evaluated, which takes longer
than PostgreSQL takes to run it.

Replaces: `Model.from_db`. Buys: `__init__` asks of each field whether its value was given, which takes several times as
long as the rest of a row.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet, Value
from django.db.models.base import ModelState
from django.db.models.query import get_related_populators
from django.db.models.signals import post_init, pre_init
from django.db.models.sql.compiler import SQLCompiler

from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.given_rows import GivenRows, bind_given
from config.postgresql.replicas import get_read_alias

Row = tuple[Any, ...]


class BindParameter(Value):
    """Stands in a queryset for a value that each run of its statement brings under this name."""

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return "%s", [self]


class CompiledQuery:
    """A queryset of rows, compiled at its first use and cached for the life of the process.

    What it depends on is read once: the present time is `Now()`, and not Python's. It runs on the database of the
    queryset (`using`), or else on that which the request reads from (`get_read_alias`).

    Args:
        queryset: `select_related` and annotations may widen it, and `only` may narrow it.
        wrap_sql: puts the SQL of the queryset into a greater statement, which may add columns behind those of a row.
        shared_transaction: whether it may share a transaction with those of other requests: it locks no rows that other
            transactions write.
        given: the columns of the rows that the greater statement is given, each with its type, where one statement
            serves many requests (config.fastpath.postgresql.given_rows). The bind parameters are some of them.
    """

    def __init__(
        self,
        queryset: QuerySet[Model],
        wrap_sql: Callable[[str], str] = str,
        *,
        shared_transaction: bool = True,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self._queryset: QuerySet[Model] | None = queryset
        self._wrap_sql, self._given = wrap_sql, given
        self._shared_transaction = shared_transaction

    def first(self, **values: object) -> tuple[Any, Row] | None:
        """The first row and the further columns beside it; None without a row.

        Args:
            values: of the bind parameters.
        """
        for row in self._run(values):
            return self._compiled.build_instance(row), row[self._compiled.width :]
        return None

    def fetch_instances(self, **values: object) -> list[Model]:
        """All rows as model instances."""
        return list(map(self._compiled.build_instance, self._run(values)))

    def fetch_records(self, **values: object) -> list[Row]:
        """All rows as named tuples of their columns and annotations, which are made in a fraction of the time."""
        return list(map(self._compiled.build_record, self._compiled.convert(self._run(values))))

    @property
    def names(self) -> frozenset[str]:
        """The columns and annotations that a record has."""
        return self._compiled.names

    def _run(self, values: Mapping[str, object]) -> Sequence[Row]:
        compiled = self._compiled
        if not compiled.sql:
            return ()
        bound = bind(compiled.params, values)
        if self._given is not None:
            bound = [GivenRows([values]), *bound]
        connection = get_connection((compiled.is_routed and get_read_alias()) or compiled.alias)
        (rows,) = connection.run((compiled.sql, bound), shared_transaction=self._shared_transaction)
        return rows

    @cached_property
    def _compiled(self) -> _Compiled:
        # Of two threads that come at once each may compile it, and the last one finds it compiled.
        queryset, attributes = self._queryset, vars(self)
        if queryset is not None:
            attributes["_compiled"] = _Compiled(queryset, self._wrap_sql, self._given)
            # The queryset is larger than all else that is cached.
            self._queryset = None
        compiled: _Compiled = attributes["_compiled"]
        return compiled


class _Compiled:
    """The part of a queryset that is cached.

    Attributes:
        alias: of the database.
        is_routed: whether a request that reads from a replica reads these rows there.
        sql: empty where no row can match, whatever the tables hold.
        params: in its order, bind parameters among them.
        width: the number of columns that belong to a row.
        names: of these columns and annotations, but for those of related rows.
        build_instance: makes a model instance of a row.
        build_record: makes a named tuple of a row that was converted.
    """

    def __init__(
        self,
        queryset: QuerySet[Model],
        wrap_sql: Callable[[str], str],
        given: Mapping[str, str] | None,
    ) -> None:
        chosen: str | None = queryset._db  # type: ignore[attr-defined]  # the stubs leave it out
        self.is_routed, self.alias = chosen is None and bool(settings.REPLICAS), chosen or DEFAULT_DB_ALIAS
        connection = connections[self.alias]
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql: str = ""
        self.params: Sequence[object] = ()
        try:
            sql, params = compiler.as_sql()
            if given is not None:
                sql = bind_given(sql, [param.value if isinstance(param, BindParameter) else None for param in params])
                params = [param for param in params if not isinstance(param, BindParameter)]
            self.sql, self.params = wrap_sql(sql), params
        except EmptyResultSet:
            pass
        self.width = len(compiler.select)
        names = [""] * self.width
        for position in compiler.klass_info["select_fields"]:
            names[position] = compiler.select[position][0].target.attname
        for name, position in compiler.annotation_col_map.items():
            names[position] = name
        kind = namedtuple("Record", names, rename=True)  # type: ignore[misc]  # for names known only now
        # A name that no tuple can have has become another one.
        self.names: frozenset[str] = frozenset(kind._fields)
        self.build_record: Callable[[Row], Row] = partial(tuple.__new__, kind)
        converters = compiler.get_converters([expression for expression, *_ in compiler.select])
        self._convert = partial(compiler.apply_converters, converters=converters) if converters else None
        self.build_instance = self._get_builder(compiler)

    def convert(self, rows: Sequence[Row]) -> Iterable[Row]:
        """Rows with the values that their fields make of the database's."""
        return self._convert(rows) if self._convert else rows

    def _get_builder(self, compiler: SQLCompiler) -> Callable[[Row], Model]:
        """The function that makes instances of rows, as Django's ModelIterable does."""
        model, positions = compiler.klass_info["model"], compiler.klass_info["select_fields"]
        own = slice(positions[0], positions[-1] + 1)
        names = [expression.target.attname for expression, *_ in compiler.select[own]]
        alias, convert = self.alias, self._convert
        related = get_related_populators(compiler.klass_info, compiler.select, alias)  # type: ignore[call-arg]
        annotations = list(compiler.annotation_col_map.items())

        def build_instance(row: Row) -> Model:
            if convert:
                (row,) = convert([row])
            instance = build_row(model, alias, names, row[own])
            for populator in related:
                populator.populate(row, instance)
            for name, position in annotations:
                setattr(instance, name, row[position])
            return instance

        return build_instance


def get_parameter_types(queryset: QuerySet[Model]) -> Mapping[str, str]:
    """The types of the bind parameters of a queryset, without their lengths: those of the columns they are compared to.

    Args:
        queryset: whose parameters each stand on the right of a look-up.
    """
    connection, found = connections[queryset.db], {}
    for child in queryset.query.where.leaves():
        parameter = getattr(child, "rhs", None)
        if isinstance(parameter, BindParameter):
            kind = child.lhs.output_field.db_type(connection)
            found[str(parameter.value)] = kind.partition("(")[0]
    return found


def bind(params: Sequence[object], values: Mapping[str, object]) -> list[object]:
    """Parameters with the values of those that are bind parameters."""
    return [values[param.value] if isinstance(param, BindParameter) else param for param in params]


def build_row(model: type[Model], alias: str | None, names: Sequence[str], values: Sequence[object]) -> Model:
    """What `model.from_db(alias, names, values)` gives."""
    if _has_own_way(model) or has_init_receivers():
        return model.from_db(alias, names, values)
    return _build(model, alias, names, values)


def has_init_receivers() -> bool:
    """Whether somebody listens to instances being made."""
    return bool(pre_init.receivers or post_init.receivers)


@cache
def _has_own_way(model: type[Model]) -> bool:
    return model.__init__ is not Model.__init__ or model.from_db.__func__ is not Model.from_db.__func__  # type: ignore[attr-defined]


def _build(model: type[Model], alias: str | None, names: Sequence[str], values: Sequence[object]) -> Model:
    row = model.__new__(model)
    state = ModelState()
    state.db, state.adding = alias, False
    row.__dict__ = columns = dict(zip(names, values, strict=True))
    columns["_state"] = state
    return row
