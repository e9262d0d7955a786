"""The queries of a view, compiled once for all requests of one kind.

Replaces: `get_queryset`, `filter_queryset` and the pages of a KeysetQuery, which are built for each request. Buys: to
build and compile a queryset takes ten times as long as to run it.

Who asks, and for which ids, is left open: a *prototype view* stands in for those of all requests of one kind, and in it
these are bind parameters. Everything else that a query depends on is in the keys of the caches. Clients choose fields,
orders and filters, so that there are more combinations than a process should keep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Self

from django.contrib.auth import get_user_model
from django.db import ProgrammingError
from django.db.models import Model, QuerySet

from config.api.listing.filters import Ordering
from config.api.listing.keyset import KeysetQuery
from config.api.principal import Principal
from config.api.viewsets import ResourceViewSet
from config.fastpath.compiled_query import BindParameter, CompiledQuery, bind
from config.fastpath.postgresql.base import get_connection
from config.postgresql.compiling import compile_queryset

logger = logging.getLogger(__name__)

_MAX_SIZE = 1024
# What comes of a prototype view that is asked for a request, or for more of a principal than is known: what it lacks,
# what a bind parameter cannot do, and a query that is sent with one.
_UNKNOWN = (AttributeError, TypeError, ProgrammingError)


@lru_cache(maxsize=_MAX_SIZE)
def get_prototype(
    view_class: type[ResourceViewSet], action: str, role: str, kind: str, fields: frozenset[str] | None
) -> ResourceViewSet:
    """The view that stands for all requests for an action, by callers of a role and kind of credential, for fields."""
    principal = build_placeholder_principal(role, kind)
    parent_id = BindParameter("parent_id")
    return view_class(action=action, principal=principal, parent_id=parent_id, chosen_fields=fields)


def build_placeholder_principal(role: str, kind: str) -> Principal:
    """A principal of this role and kind of credential, whose user's id is the bind parameter `user_id`.

    Put the id into a condition of a query, for it equals nothing in Python. Of the user's other columns, and of the
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

    They are built anew where clients choose the values of a filter, and not only among a few.

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
        columns: the columns to read, to which the primary key and those of the order are added; None reads all.
        is_cached: whether it will be asked again, so that its statements are worth keeping.
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
        self.count_sql, self.count_params = self._compile_count()

    def bind(self, values: Mapping[str, object]) -> Self:
        """The same query for one request, with the values of the view's bind parameters."""
        bound = object.__new__(type(self))
        bound.__dict__ = {**self.__dict__, "values": values}
        return bound

    def _compile_count(self) -> tuple[str, Sequence[object]]:
        if self.counted:
            total = self.counted.get_total()
            return f"SELECT {total.sql}", total.params
        sql, params = compile_queryset(self.queryset.order_by().values("pk"))
        return f"SELECT count(*) FROM ({sql}) AS counted", params  # noqa: S608 - of Django's

    def count(self) -> int:
        statement = (self.count_sql, bind(self.count_params, self.values))
        (((total,),),) = get_connection(self.queryset.db).run(statement, shared_transaction=True)
        return int(total)

    def fetch(self, build: Callable[..., QuerySet[Model]], *args: object, **values: object) -> list[Any]:
        query = self.compile(build, self.shared, args, tuple(values))
        if self.attributes is None or not self.attributes <= query.names:
            return query.fetch_instances(**self.values, **values)
        return query.fetch_records(**self.values, **values)


# Of all lists, in each order and for each choice of a limit.
@lru_cache(maxsize=512)
def _compile(
    build: Callable[..., QuerySet[Model]], query: KeysetQuery, args: Sequence[object], names: Sequence[str]
) -> CompiledQuery:
    return CompiledQuery(build(query, *args, **{name: BindParameter(name) for name in names}))
