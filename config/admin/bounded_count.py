"""Numbers of rows that no trigger keeps: each is counted along an index, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import IntegerField, Model, QuerySet, Subquery

MAX_COUNT = 10_000


class _CountRows(Subquery):
    """The number of rows of a subquery."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) _counted)"
    output_field = IntegerField()


def limit(rows: QuerySet[Model]) -> QuerySet:
    """The keys of the first rows, one more than the bound: so that it shows whether there are more."""
    return rows.order_by().values("pk")[: MAX_COUNT + 1]


def fetch_counts(model: type[Model], key: object, querysets: Sequence[QuerySet]) -> Sequence[int]:
    """Counts the rows of limited querysets, all of them by one statement.

    Args:
        model: with `key`, a row that is there: the numbers are selected beside it.
        key: the primary key of that row.
        querysets: what `limit` returned, or unions of such.
    """
    return model._base_manager.filter(pk=key).values_list(*map(_CountRows, querysets)).get() if querysets else ()


def describe(count: int) -> str:
    """A count as text: `1,234`, or `more than 10,000`."""
    return f"more than {MAX_COUNT:,}" if count > MAX_COUNT else f"{count:,}"
