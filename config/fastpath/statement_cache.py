"""What a view reads by, made once for all requests alike and kept.

Who asks and for which ids is left open: a view stands in for those of all requests, and in it these are Parameters.
What else a statement depends on is in the keys. Clients choose fields, orders and filters: there are more choices than
a process should keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from config.api.listing.keyset import ListedRows
from config.api.listing.ordering import Ordering
from config.api.principal import anybody
from config.fastpath import serializers
from config.fastpath.compiled_query import Parameter, Statement

_MOST = 1024


@lru_cache(maxsize=_MOST)
def alike(view: Any, action: str, role: str, kind: str, chosen: frozenset[str] | None) -> Any:
    """The view that stands for all requests for an action, by whoever has a role, for the chosen fields."""
    return view(action=action, principal=anybody(role, kind), parent_id=Parameter("parent_id"), chosen=chosen)


def listed(view: Any, order: Ordering, filters: Mapping[str, str]) -> ListedRows:
    """The rows of a list; made anew where clients choose the values of a filter, and not only among a few."""
    keep = all(map(view.filterset_class.is_choice, filters))
    return (_listed if keep else _listed.__wrapped__)(view, order, tuple(filters.items()), keep)


@lru_cache(maxsize=_MOST)
def _listed(view: Any, order: Ordering, filters: Sequence[tuple[str, str]], keep: bool) -> ListedRows:
    given = dict(filters)
    rows = view.filterset_class.apply(view.get_queryset(), given)
    shown = partial(view.showing, names=view.names, single=False)
    attributes = serializers.attributes(view.serializer_class, view.names)
    return ListedRows(rows, order, given, shown, attributes, kept=keep)


@lru_cache(maxsize=_MOST)
def single(view: Any, lock: bool) -> Statement:
    """The row of an `id`; locked, where it is to be written."""
    rows = view.get_queryset().filter(pk=Parameter("id")).order_by()
    if read_with := [link.reads for link in view.links if link.reads]:
        rows = rows.select_related(*read_with)
    if lock:
        # What is to go is locked against the rows that are about to refer to it, too.
        return Statement(rows.select_for_update(of=("self",), no_key=view.action != "destroy"))
    return Statement(view.showing(rows, view.names, single=True))


@lru_cache(maxsize=_MOST)
def parent(view: Any) -> Statement:
    """The parent of a nested collection, if the caller may look into it."""
    return Statement(view.parents().filter(pk=view.parent_id).order_by())
