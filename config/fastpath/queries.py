"""Querysets that are compiled to SQL once, prepared by the server, and run with other values each time.

Replaces: the evaluation of a queryset. Buys: Django compiles a queryset each time it is evaluated, which takes longer
than PostgreSQL takes to run it.

Replaces: `Model.from_db`. Buys: `__init__` asks of each field whether its value was given, which takes several times as
long as the rest of a row.

Replaces: `get_queryset`, `filter_queryset` and the pages of a KeysetQuery, which are built for each request. Buys: to
build and compile a queryset takes ten times as long as to run it.

The caller and the ids are left open: a *prototype view* represents all requests of one kind, in which these are bind
parameters. Everything else that a query depends on is in the keys of the caches. Clients choose fields, orders and
filters, so there are more combinations than a process should keep.
"""

from __future__ import annotations

import logging
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Self

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet, Value
from django.db.models.base import ModelState
from django.db.models.query import get_related_populators
from django.db.models.sql.compiler import SQLCompiler

from config.api.listing.filters import Ordering
from config.api.listing.keyset import KeysetQuery
from config.api.principal import Principal
from config.api.viewsets import ResourceViewSet
from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.statements import GivenRows, bind_given
from config.postgresql.replicas.reads import get_read_alias

logger = logging.getLogger(__name__)

_MAX_SIZE = 1024
# Raised when a prototype view needs a request, or more of a principal than is known: a missing attribute, an operation
# that a bind parameter does not support, and a query that is sent with one.
_UNKNOWN = (AttributeError, TypeError, ProgrammingError)

Row = tuple[Any, ...]


class BindParameter(Value):
    """Stands in a queryset for a value that each run of its statement brings under this name."""

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return "%s", [self]


class CompiledQuery:
    """A queryset of rows that was compiled, to be cached for the life of the process.

    What it depends on is read once: the present time is `Now()`, and not Python's. It runs on the database of the
    queryset (`using`), or else on that which the request reads from (`get_read_alias`).

    Args:
        queryset: `select_related` and annotations may widen it, and `only` may narrow it.
        wrap_sql: puts the SQL of the queryset into a larger statement, which may append columns to a row.
        shared_transaction: whether it may share a transaction with other requests: it locks no rows that other
            transactions write.
        given: the columns of the rows that the larger statement is given, each with its type, where one statement
            serves many requests (config.fastpath.postgresql.statements). The bind parameters are some of them.

    Attributes:
        names: the columns and annotations that a record has, without those of related rows.
    """

    def __init__(
        self,
        queryset: QuerySet[Model],
        wrap_sql: Callable[[str], str] = str,
        *,
        shared_transaction: bool = True,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self._shared_transaction, self._is_given = shared_transaction, given is not None
        chosen: str | None = queryset._db  # type: ignore[attr-defined]  # the stubs leave it out
        self._is_routed, self._alias = chosen is None and bool(settings.REPLICAS), chosen or DEFAULT_DB_ALIAS
        compiler = queryset.query.get_compiler(connection=connections[self._alias])
        # Empty where no row can match, whatever the tables hold.
        self._sql: str = ""
        self._params: Sequence[object] = ()
        try:
            sql, params = compiler.as_sql()
            if given is not None:
                sql = bind_given(sql, [param.value if isinstance(param, BindParameter) else None for param in params])
                params = [param for param in params if not isinstance(param, BindParameter)]
            self._sql, self._params = wrap_sql(sql), params
        except EmptyResultSet:
            pass
        # The number of columns that belong to a row.
        self._width = len(compiler.select)
        names = [""] * self._width
        for position in compiler.klass_info["select_fields"]:
            names[position] = compiler.select[position][0].target.attname
        for name, position in compiler.annotation_col_map.items():
            names[position] = name
        kind = namedtuple("Record", names, rename=True)  # type: ignore[misc]  # for names known only now
        # A name that no tuple can have has become another one.
        self.names: frozenset[str] = frozenset(kind._fields)
        self._build_record: Callable[[Row], Row] = partial(tuple.__new__, kind)
        converters = compiler.get_converters([expression for expression, *_ in compiler.select])
        self._convert = partial(compiler.apply_converters, converters=converters) if converters else None
        self._build_instance = self._get_builder(compiler)

    def first(self, **values: object) -> tuple[Any, Row] | None:
        """The first row and its appended columns; None without a row.

        Args:
            values: of the bind parameters.
        """
        for row in self._run(values):
            return self._build_instance(row), row[self._width :]
        return None

    def fetch_instances(self, **values: object) -> list[Model]:
        """All rows as model instances."""
        return list(map(self._build_instance, self._run(values)))

    def fetch_records(self, **values: object) -> list[Row]:
        """All rows as named tuples of their columns and annotations, which are made in a fraction of the time."""
        rows = self._run(values)
        return list(map(self._build_record, self._convert(rows) if self._convert else rows))

    def _run(self, values: Mapping[str, object]) -> Sequence[Row]:
        if not self._sql:
            return ()
        bound = bind(self._params, values)
        if self._is_given:
            bound = [GivenRows([values]), *bound]
        connection = get_connection((self._is_routed and get_read_alias()) or self._alias)
        return connection.run(self._sql, bound, shared_transaction=self._shared_transaction)

    def _get_builder(self, compiler: SQLCompiler) -> Callable[[Row], Model]:
        """The function that makes instances of rows, as Django's ModelIterable does."""
        model, positions = compiler.klass_info["model"], compiler.klass_info["select_fields"]
        own = slice(positions[0], positions[-1] + 1)
        names = [expression.target.attname for expression, *_ in compiler.select[own]]
        alias, convert = self._alias, self._convert
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
    """The types of the bind parameters of a queryset, without lengths: the types of the columns they are compared to.

    Args:
        queryset: each of its parameters is the right side of a look-up.
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
    """Does what `model.from_db(alias, names, values)` does. No model of the service has its own `__init__`."""
    if model.from_db.__func__ is not Model.from_db.__func__:  # type: ignore[attr-defined]  # a class method has one
        return model.from_db(alias, names, values)
    row = model.__new__(model)
    state = ModelState()
    state.db, state.adding = alias, False
    row.__dict__ = columns = dict(zip(names, values, strict=True))
    columns["_state"] = state
    return row


# --- Those of a view


@lru_cache(maxsize=_MAX_SIZE)
def get_prototype(
    view_class: type[ResourceViewSet], action: str, role: str, kind: str, fields: frozenset[str] | None
) -> ResourceViewSet:
    """The view that represents all requests for an action and fields, by callers of a role and kind of credential."""
    principal = build_placeholder_principal(role, kind)
    parent_id = BindParameter("parent_id")
    return view_class(action=action, principal=principal, parent_id=parent_id, chosen_fields=fields)


def build_placeholder_principal(role: str, kind: str) -> Principal:
    """A principal of this role and kind of credential, whose user's id is the bind parameter `user_id`.

    Put the id into a condition of a query, because it equals nothing in Python. Of the user's other columns, and of the
    scopes, nothing is known: a query that depends on them fails to be built, and the view is left to the reference.
    """
    user = get_user_model().from_db(None, ["id", "role"], [BindParameter("user_id"), role])
    scopes: Any = None
    return Principal(user, scopes, kind)


def get_list_query(
    prototype: ResourceViewSet,
    ordering: Ordering,
    filters: Mapping[str, str],
    attributes: frozenset[str] | None,
) -> CompiledKeysetQuery | None:
    """The pages of a list, or None where the reference must build them.

    They are not cached if clients choose the values of a filter freely.

    Args:
        attributes: all that is read of a row to represent it; None where that is not known.
    """
    is_cached = all(map(prototype.filterset_class.is_choice, filters))
    build = _build_list_query if is_cached else _build_list_query.__wrapped__
    return build(prototype, ordering, tuple(filters.items()), attributes, is_cached=is_cached)


@lru_cache(maxsize=_MAX_SIZE)
def _build_list_query(
    prototype: ResourceViewSet,
    ordering: Ordering,
    filters: Sequence[tuple[str, str]],
    attributes: frozenset[str] | None,
    *,
    is_cached: bool,
) -> CompiledKeysetQuery | None:
    values = dict(filters)
    try:
        queryset = prototype.filterset_class.apply(prototype.get_queryset(), values)
        with_related = partial(prototype.with_related, names=prototype.field_names, single=False)
        # While the reference can still take over: a page is built by it later.
        shown = with_related(queryset)
    except _UNKNOWN:
        _log_unsupported(prototype)
        return None
    columns = None if attributes is None else _get_columns(shown, attributes)
    return CompiledKeysetQuery(
        queryset, ordering, values, with_related, attributes, columns=columns, is_cached=is_cached
    )


def _get_columns(rows: QuerySet[Model], attributes: frozenset[str]) -> frozenset[str] | None:
    """The columns in which attributes of rows are stored; None where all columns must be read to have them."""
    columns = attributes - rows.query.annotations.keys()
    stored = {field.attname for field in rows.model._meta.concrete_fields}
    # Django raises FieldError where select_related follows a foreign key that only() left out.
    return columns if columns <= stored and not rows.query.select_related else None


@lru_cache(maxsize=_MAX_SIZE)
def get_object_query(prototype: ResourceViewSet) -> CompiledQuery | None:
    """The row of the bind parameter `id`, or None where the reference must build its query."""
    try:
        rows = prototype.build_object_query(prototype.get_queryset(), BindParameter("id"), lock=False)
        return CompiledQuery(rows.order_by())
    except _UNKNOWN:
        _log_unsupported(prototype)
        return None


@lru_cache(maxsize=_MAX_SIZE)
def get_parent_query(prototype: ResourceViewSet) -> CompiledQuery | None:
    """The parent of a nested collection, if the caller may look into it; None where the reference must ask."""
    try:
        return CompiledQuery(prototype.get_parents().filter(pk=prototype.parent_id).order_by())
    except _UNKNOWN:
        _log_unsupported(prototype)
        return None


def _log_unsupported(prototype: ResourceViewSet) -> None:
    name = type(prototype).__name__
    logger.warning("%s.%s depends on more than role, kind and id of the caller", name, prototype.action, exc_info=True)


class CompiledKeysetQuery(KeysetQuery):
    """A KeysetQuery whose pages are compiled. What differs between two requests is bound by `bind`.

    Args:
        attributes: all that is read of a row to represent it; None where that is not known.
        columns: the columns to read, besides the primary key and the order's columns; None reads all.
        is_cached: whether it will be requested again, so that its statements are worth keeping.
    """

    values: Mapping[str, object]

    def __init__(
        self,
        queryset: QuerySet[Model],
        ordering: Ordering,
        filters: Mapping[str, str],
        with_related: Callable[[QuerySet[Model]], QuerySet[Model]],
        attributes: frozenset[str] | None,
        *,
        columns: frozenset[str] | None,
        is_cached: bool,
    ) -> None:
        super().__init__(queryset, ordering, filters, with_related, columns)
        self.attributes = attributes
        self.shared = self
        self.compile = _compile if is_cached else _compile.__wrapped__
        total = self.get_total()
        self.count_sql, self.count_params = f"SELECT {total.sql}", total.params

    def bind(self, values: Mapping[str, object]) -> Self:
        """The same query for one request, with the values of the view's bind parameters."""
        bound = object.__new__(type(self))
        bound.__dict__ = {**self.__dict__, "values": values}
        return bound

    def count(self) -> int:
        params = bind(self.count_params, self.values)
        ((total,),) = get_connection(self.queryset.db).run(self.count_sql, params, shared_transaction=True)
        return int(total)

    def fetch(self, build: Callable[..., QuerySet[Model]], *args: object, **values: object) -> list[Any]:
        query = self.compile(build, self.shared, args, tuple(values))
        if self.attributes is None or not self.attributes <= query.names:
            return query.fetch_instances(**self.values, **values)
        return query.fetch_records(**self.values, **values)


# For all lists, in each order and for each choice of a limit.
@lru_cache(maxsize=512)
def _compile(
    build: Callable[..., QuerySet[Model]], query: KeysetQuery, args: Sequence[object], names: Sequence[str]
) -> CompiledQuery:
    return CompiledQuery(build(query, *args, **{name: BindParameter(name) for name in names}))
