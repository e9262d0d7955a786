"""Which filters go together, and with which order: those whose rows an index has in the order of the list.

It follows from the declared indexes and from nothing else: not from how many rows there are, nor from their values.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from django.db.models import Model

from config.api.listing.filters import Ordering, StrictFilterSet
from config.postgresql.row_counts import get_counts


def find_refusals(
    filterset_class: type[StrictFilterSet],
    model: type[Model],
    values: Mapping[str, str],
    ordering: Ordering,
    parent: Sequence[str] = (),
) -> Iterator[tuple[str, str]]:
    """The filters that no index serves in an order, each with what to do.

    Args:
        filterset_class: of the list.
        model: of its rows.
        values: the filters' values, by name.
        ordering: of the list.
        parent: the column of the parent of a nested collection, if it is one.

    Yields:
        The name of a filter, and a sentence.
    """
    if filterset_class.is_small(values):
        return
    sort = ordering.field
    bounds = filterset_class.get_bounds(values)
    for name, column in bounds.items():
        if column != sort:
            yield name, _explain_bound(column, sort, {*bounds.values()} - {column})
    equal = _get_equal_columns(filterset_class, model, values)
    if not has_index(model, [*parent, *equal, *ordering.columns]):
        other = f"bounds of {sort}" if sort in bounds.values() else f"sort={sort}"
        for name in values.keys() - bounds.keys():
            yield name, f"Cannot be combined with {other}. Omit one of them."


def _explain_bound(column: str, sort: str, others: Collection[str]) -> str:
    """What to do about a bound of a column in another order, given bounds of other columns."""
    if others:
        bounds = " and ".join(sorted(others))
        return f"Only one field can have bounds. Omit this filter, or omit those on {bounds} and use sort={column}."
    return f"This filter works only with sort={column}, not sort={sort}. Change or omit sort."


def _get_equal_columns(
    filterset_class: type[StrictFilterSet], model: type[Model], values: Mapping[str, str]
) -> list[str]:
    """The columns that have a value in each part of the list; a list is divided by all counted columns at once."""
    counts = get_counts(model)
    counted = list(counts.columns) if counts and not values.keys().isdisjoint(counts.columns) else []
    return [*counted, *filterset_class.get_ids(values)]


def has_index(model: type[Model], columns: Sequence[str]) -> bool:
    """Whether an index of a model has these columns, in this order."""
    if list(columns) == ["id"]:
        return True
    meta = model._meta
    return any(
        [meta.get_field(name).attname for name in index.fields] == list(columns)  # type: ignore[union-attr]  # a column
        for index in meta.indexes
        if index.fields
    )
