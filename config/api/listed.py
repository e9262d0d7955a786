"""The rows of a list as PostgreSQL reads them best: in parts that indexes keep in order, with the total beside them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, QuerySet, Subquery
from django.db.models.expressions import Combinable, RawSQL

from config import counting
from config.api import statements
from config.api.ordering import Ordering

# Up to here, stepping over rows costs less than finding the way around them.
NEAR = 1_000
# PostgreSQL reads no greater numbers.
GREATEST_OFFSET = 2**63 - 1


class _Count(Subquery):
    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = BigIntegerField()


class ListedRows:
    """The rows of a list in an order.

    Args:
        rows: the list as a whole.
        filters: the equality filters that `rows` are under.
        shown: gives a page what its rows show beside their own columns.

    Attributes:
        parts: disjoint parts that are the list when taken together, each kept in the order by one index. Where counts
            are kept apart by columns, indexes begin with these columns; an undivided list may have an index of its own.
    """

    def __init__(
        self, rows: QuerySet[Any], ordering: Ordering, filters: Mapping[str, str], shown: Callable[[Any], Any]
    ) -> None:
        self.rows = rows
        self.shown = shown
        self.model = rows.model
        self.ordering = ordering
        counts = counting.of(rows.model)
        self.parts = self._divided(counts, filters) if counts else [rows]
        self._counted = counts.under(filters, rows) if counts else None

    def _divided(self, counts: counting.Counts, filters: Mapping[str, str]) -> Sequence[QuerySet[Any]]:
        if filters.keys() - set(counts.columns) or (not filters and self._kept_in_order()):
            return [self.rows]
        values = ([filters[column]] if column in filters else counts.values(column) for column in counts.columns)
        return [self.rows.filter(**dict(zip(counts.columns, part, strict=True))) for part in product(*values)]

    def _kept_in_order(self) -> bool:
        columns = list(self.ordering.columns)
        return columns == ["id"] or any(index.fields == columns for index in self.model._meta.indexes)

    def total(self) -> int:
        """How many rows there are."""
        if not self._counted:
            return self.rows.count()
        total = self._counted.total()
        ((number,),) = connection.run(f"SELECT {total.sql}", total.params)  # type: ignore[attr-defined]
        return int(number)

    def page(self, start: int, stop: int) -> tuple[list[Any], int]:
        """The rows from `start` up to `stop`, and the total, which one statement tells both, of one snapshot."""
        if stop > GREATEST_OFFSET or self.rows.query.is_empty():
            return [], self.total()
        rows = self._page(start, stop)
        if not rows:
            # No row carries the total. When it says that there are some, they came after the look at the page.
            total = self.total()
            if total <= start:
                return [], total
            rows = self._page(start, stop)
        # Gone again: there were no more than `start` at that moment.
        return rows, rows[0].total_listed if rows else start

    def _page(self, start: int, stop: int) -> list[Any]:
        if start < NEAR or not self._counted:
            return self._in_order(start, stop)
        if self.ordering.field == "id":
            first = self._counted.id_at(start, descending=self.ordering.descending)
            return self._by_keys(self._rest(), 0, stop - start, first=first)
        total = self.total()
        if start >= total:
            return []
        if start >= total // 2:
            rows = self._by_keys(self.parts, max(total - stop, 0), total - start, backwards=True)
            # Otherwise the way from the end was reckoned with another total than that of the rows' snapshot.
            if rows and rows[0].total_listed == total:
                return rows
        return self._in_order(start, stop)

    def _rest(self) -> Sequence[QuerySet[Any]]:
        """The parts from the row on that `first` names, in the order of ids."""
        beyond = "pk__lte" if self.ordering.descending else "pk__gte"
        return [part.filter(**{beyond: RawSQL("(SELECT id FROM first)", [])}) for part in self.parts]

    def _in_order(self, start: int, stop: int) -> list[Any]:
        """The rows of a window, by a walk from the beginning of the list."""
        if len(self.parts) > 1 or start >= NEAR:
            return self._by_keys(self.parts, start, stop)
        return self._with_total(self.ordering.apply(self.parts[0])[start:stop])

    def _by_keys(
        self,
        parts: Sequence[QuerySet[Any]],
        start: int,
        stop: int,
        *,
        first: RawSQL | None = None,
        backwards: bool = False,
    ) -> list[Any]:
        """The rows of a window, by a walk along their sort keys alone: these are in the indexes, the rows are not.

        Args:
            first: what the parts know by this name.
        """
        keys = window([part.values(*self.ordering.columns) for part in parts], self.ordering, start, stop, backwards)
        sql, params = statements.sql_of(keys)
        if first:
            sql, params = f"WITH first (id) AS {first.sql} {sql}", (*first.params, *params)
        chosen = RawSQL(f"(SELECT id FROM ({sql}) AS keys)", params)
        return self._with_total(self.ordering.apply(self.model._default_manager.filter(pk__in=chosen)))

    def first(self, parts: Sequence[QuerySet[Any]], count: int, *, backwards: bool = False) -> list[Any]:
        """The first rows, or the last ones from the last on, of what is left of the parts."""
        return statements.fetch(self.shown(window(parts, self.ordering, 0, count, backwards)))

    def _with_total(self, page: QuerySet[Any]) -> list[Any]:
        return statements.fetch(self.shown(page).annotate(total_listed=self._total()))

    def _total(self) -> Combinable:
        if self._counted:
            return self._counted.total()
        return _Count(self.rows.order_by().values("pk"))


def window(
    parts: Sequence[QuerySet[Any]], ordering: Ordering, start: int, stop: int, backwards: bool = False
) -> QuerySet[Any]:
    """The rows from `start` up to `stop` of the parts taken together, none of which is read any further."""
    if len(parts) == 1:
        return ordering.apply(parts[0], backwards=backwards)[start:stop]
    read = [ordering.apply(part, backwards=backwards)[:stop] for part in parts]
    return ordering.apply(read[0].union(*read[1:], all=True), backwards=backwards)[start:stop]
