"""The rows of a list as PostgreSQL reads them best: in parts that indexes keep in order, with the total beside them."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import BigIntegerField, F, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import (
    Tuple,
    TupleGreaterThan,
    TupleGreaterThanOrEqual,
    TupleLessThan,
    TupleLessThanOrEqual,
)

from config.api.listing.cursors import Place
from config.api.listing.ordering import Ordering
from config.fastpath import compiled_query
from config.postgresql import row_counts

# Up to here, stepping over rows costs less than finding the way around them.
NEAR = 1_000
# PostgreSQL reads no greater numbers.
GREATEST_OFFSET = 2**63 - 1

_BEYOND = {">": TupleGreaterThan, ">=": TupleGreaterThanOrEqual, "<": TupleLessThan, "<=": TupleLessThanOrEqual}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
NO_VALUES: Mapping[str, Any] = MappingProxyType({})


class _Count(Subquery):
    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = BigIntegerField()


class ListedRows:
    """The rows of a list in an order, whoever asks for them: what differs between two requests are Parameters.

    Args:
        rows: the list as a whole.
        filters: the equality filters that `rows` are under.
        shown: gives a page what its rows show beside their own columns.
        attributes: all that will be asked of a row beside the order's columns and `total_listed`, where that is known.
        kept: whether it is asked again, so that its statements are worth keeping.

    Attributes:
        parts: disjoint parts that are the list when taken together, each kept in the order by one index. Where counts
            are kept apart by columns, indexes begin with these columns; an undivided list may have an index of its own.
    """

    def __init__(
        self,
        rows: QuerySet[Any],
        ordering: Ordering,
        filters: Mapping[str, str],
        shown: Callable[[Any], Any],
        attributes: frozenset[str] | None = None,
        *,
        kept: bool = False,
    ) -> None:
        self._attributes = attributes
        self._statement = _statement if kept else _statement.__wrapped__
        self.rows = rows
        self.shown = shown
        self.model = rows.model
        self.ordering = ordering
        counts = row_counts.of(rows.model)
        self.parts = self._divided(counts, filters) if counts else [rows]
        self._counted = counts.under(filters, rows) if counts else None

    def _divided(self, counts: row_counts.Counts, filters: Mapping[str, str]) -> Sequence[QuerySet[Any]]:
        if filters.keys() - set(counts.columns) or (not filters and self._kept_in_order()):
            return [self.rows]
        values = ([filters[column]] if column in filters else counts.values(column) for column in counts.columns)
        return [self.rows.filter(**dict(zip(counts.columns, part, strict=True))) for part in product(*values)]

    def _kept_in_order(self) -> bool:
        columns = list(self.ordering.columns)
        return columns == ["id"] or any(index.fields == columns for index in self.model._meta.indexes)

    # --- By offset

    def total(self, values: Mapping[str, Any] = NO_VALUES) -> int:
        """How many rows there are.

        Args:
            values: of the Parameters.
        """
        sql, parameters = self._total_alone
        ((total,),) = compiled_query.run(f"SELECT {sql}", parameters, values)
        return int(total)

    @cached_property
    def _total_alone(self) -> tuple[str, Sequence[Any]]:
        if self._counted:
            total = self._counted.total()
            return total.sql, total.params
        try:
            sql, parameters = self.rows.order_by().values("pk").query.sql_with_params()
        except EmptyResultSet:
            return "0", ()
        return f"(SELECT count(*) FROM ({sql}) AS counted)", parameters

    def page(self, start: int, stop: int, values: Mapping[str, Any] = NO_VALUES) -> tuple[list[Any], int]:
        """The rows from `start` up to `stop`, and the total, which one statement tells both, of one snapshot.

        Args:
            values: of the Parameters.
        """
        if stop > GREATEST_OFFSET:
            return [], self.total(values)
        rows = self._page(start, stop, values)
        if not rows:
            # No row carries the total. When it says that there are some, they came after the look at the page.
            total = self.total(values)
            if total <= start:
                return [], total
            rows = self._page(start, stop, values)
        # Gone again: there were no more than `start` at that moment.
        return rows, rows[0].total_listed if rows else start

    def _page(self, start: int, stop: int, values: Mapping[str, Any]) -> list[Any]:
        if start < NEAR or not self._counted:
            return self._read(ListedRows._in_order, start, stop, values=values)
        if self.ordering.field == "id":
            return self._read(ListedRows._from_id_at, stop - start, values={**values, "start": start})
        total = self.total(values)
        if start >= total:
            return []
        if start >= total // 2:
            rows = self._read(ListedRows._backwards, max(total - stop, 0), total - start, values=values)
            # Otherwise the way from the end was reckoned with another total than that of the rows' snapshot.
            if rows and rows[0].total_listed == total:
                return rows
        return self._read(ListedRows._in_order, start, stop, values=values)

    def _from_id_at(self, count: int) -> QuerySet[Any]:
        """The rows from that on which stands at `start`, a Parameter, in the order of ids."""
        counted: Any = self._counted
        first = counted.id_at(compiled_query.Parameter("start"), descending=self.ordering.descending)
        beyond = "pk__lte" if self.ordering.descending else "pk__gte"
        rest = [part.filter(**{beyond: RawSQL("(SELECT id FROM first)", [])}) for part in self.parts]
        return self._by_keys(rest, 0, count, first=first)

    def _in_order(self, start: int, stop: int) -> QuerySet[Any]:
        """The rows of a window, by a walk from the beginning of the list."""
        if len(self.parts) > 1 or start >= NEAR:
            return self._by_keys(self.parts, start, stop)
        return self._with_total(self.ordering.apply(self.parts[0])[start:stop])

    def _backwards(self, start: int, stop: int) -> QuerySet[Any]:
        """The rows of a window that is counted from the end, by a walk from there."""
        return self._by_keys(self.parts, start, stop, backwards=True)

    def _by_keys(
        self,
        parts: Sequence[QuerySet[Any]],
        start: int,
        stop: int,
        *,
        first: RawSQL | None = None,
        backwards: bool = False,
    ) -> QuerySet[Any]:
        """The rows of a window, by a walk along their sort keys alone: these are in the indexes, the rows are not.

        Args:
            first: what the parts know by this name.
        """
        keys = window([part.values(*self.ordering.columns) for part in parts], self.ordering, start, stop, backwards)
        sql, params = keys.query.sql_with_params()
        if first:
            sql, params = f"WITH first (id) AS {first.sql} {sql}", (*first.params, *params)
        chosen = RawSQL(f"(SELECT id FROM ({sql}) AS keys)", params)
        return self._with_total(self.ordering.apply(self.model._default_manager.filter(pk__in=chosen)))

    def _with_total(self, page: QuerySet[Any]) -> QuerySet[Any]:
        total = self._counted.total() if self._counted else _Count(self.rows.order_by().values("pk"))
        return self.shown(page).annotate(total_listed=total)

    # --- By cursor

    def beyond(
        self, place: Place | None, count: int, values: Mapping[str, Any] = NO_VALUES, *, backwards: bool = False
    ) -> list[Any]:
        """The first rows beyond a place, or with `backwards` the last ones, from the last on.

        Args:
            place: where the list is entered; None for its beginning.
            values: of the Parameters.
        """
        if place is None:
            return self._read(ListedRows._beyond, None, count, backwards, values=values)
        key = {f"key_{position}": value for position, value in enumerate(place.key)}
        return self._read(ListedRows._beyond, place.comparison, count, backwards, values={**values, **key})

    def _beyond(self, comparison: str | None, count: int, backwards: bool) -> QuerySet[Any]:
        """By one comparison of rows with a key of Parameters, which the order's index serves as it stands."""
        parts = self.parts
        if comparison:
            lookup = _BEYOND[_MIRRORED[comparison] if self.ordering.descending else comparison]
            columns = self.ordering.columns
            key = tuple(compiled_query.Parameter(f"key_{position}") for position in range(len(columns)))
            parts = [part.filter(lookup(Tuple(*map(F, columns)), key)) for part in parts]
        return self.shown(window(parts, self.ordering, 0, count, backwards))

    # --- Both

    def _read(self, page: Callable[..., QuerySet[Any]], *arguments: Any, values: Mapping[str, Any]) -> list[Any]:
        """Whole instances, unless records are enough."""
        statement = self._statement(page, self, *arguments)
        if self._attributes is None or not self._attributes <= statement.names:
            return statement.rows(**values)
        return statement.records(**values)


# Of all lists, in each order and for each choice of a limit; clients choose, so that there are more than a process
# should remember.
@lru_cache(maxsize=512)
def _statement(page: Callable[..., QuerySet[Any]], *arguments: Any) -> compiled_query.Statement:
    return compiled_query.Statement(page(*arguments))


def window(
    parts: Sequence[QuerySet[Any]], ordering: Ordering, start: int, stop: int, backwards: bool = False
) -> QuerySet[Any]:
    """The rows from `start` up to `stop` of the parts taken together, none of which is read any further."""
    if len(parts) == 1:
        return ordering.apply(parts[0], backwards=backwards)[start:stop]
    read = [ordering.apply(part, backwards=backwards)[:stop] for part in parts]
    return ordering.apply(read[0].union(*read[1:], all=True), backwards=backwards)[start:stop]
