"""The pages of a list as PostgreSQL reads them best: in parts that indexes keep in order, with the total beside them.

Each page is a queryset that a `build_…` method makes. The values that differ between two requests for the same kind of
page (an offset, a cursor's key) are its keyword arguments.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from django.db.models import F, Model, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import (
    Tuple,
    TupleGreaterThan,
    TupleGreaterThanOrEqual,
    TupleLessThan,
    TupleLessThanOrEqual,
)
from django.db.models.functions import Coalesce

from config.api.listing.cursors import CursorPosition
from config.api.listing.filters import Ordering, split_values
from config.postgresql import row_counts
from config.postgresql.compiling import compile_queryset, fetch_rows

# Up to this offset, stepping over rows costs less than finding the way around them.
MAX_NEAR_OFFSET = 1_000
# PostgreSQL reads no greater numbers.
MAX_OFFSET = 2**63 - 1

_LOOKUPS = {">": TupleGreaterThan, ">=": TupleGreaterThanOrEqual, "<": TupleLessThan, "<=": TupleLessThanOrEqual}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

Slice = tuple[list[Any], int]
WithRelated = Callable[[QuerySet[Any]], QuerySet[Any]]


class Side(NamedTuple):
    """The rows nearest to a position on one side of it.

    Attributes:
        has_others: whether there are rows on the other side.
        reached: the sort key up to which rows were looked at, where that was ended before the list ended.
    """

    rows: list[Any]
    has_others: bool
    reached: tuple[Any, ...] | None = None


class KeysetQuery:
    """The rows of a list in an order.

    Args:
        queryset: the list as a whole.
        ordering: the order; that of the queryset does not matter.
        filters: the values of the equality filters that the queryset is under, by name.
        with_related: adds the related values that the rows of a page show.
        columns: the columns to read, besides the primary key and the order's columns; None reads all.

    Attributes:
        parts: disjoint querysets that are the list when taken together, each ordered by one index. Where counts
            are grouped by columns, indexes begin with these columns; an undivided list may have an index of its own.
        takes_several_values: whether the value of a filter is a list of values. Each combination is a part, so their
            number must have been validated.
        is_paged_up_to_bound: whether pages by offset reach to that bound.
    """

    takes_several_values = is_paged_up_to_bound = False

    def __init__(
        self,
        queryset: QuerySet[Any],
        ordering: Ordering,
        filters: Mapping[str, str],
        with_related: WithRelated,
        columns: Collection[str] | None = None,
    ) -> None:
        self.columns = None if columns is None else {*columns, *ordering.columns}
        self.queryset = queryset = self._read_columns(queryset)
        self.model = queryset.model
        self.ordering = ordering
        self.with_related = with_related
        counts = row_counts.get_counts(queryset.model)
        split = split_values if self.takes_several_values else lambda value: [value]
        values = {name: split(value) for name, value in filters.items()}
        self.parts: Sequence[QuerySet[Any]] = [queryset]
        if counts and self.is_divided(values.keys() & set(counts.columns), values):
            self.parts = divide(queryset, counts, values)
        self.counted = counts.filter(queryset, values) if counts else None

    def is_divided(self, counted: Collection[str], filters: Collection[str]) -> bool:
        """Whether the list is read in parts.

        Args:
            counted: the names of those filters by whose columns the row counts are grouped.
            filters: the names of all filters.
        """
        return len(counted) == len(filters) and (bool(filters) or not has_index(self.model, self.ordering.columns))

    # --- By offset

    def count(self) -> int:
        """The total of the list; for one that is counted up to a bound, at most one more than that."""
        total = self.get_total()
        return int(fetch_rows(f"SELECT {total.sql}", total.params, self.queryset.db)[0][0])

    def fetch_exact_total(self) -> int | None:
        """The total that a page tells; None where it tells the least one alone."""
        total = self.count()
        return total if self.get_least(total) is None else None

    def get_least(self, total: int) -> int | None:
        """How many rows there are at least, where `total` does not count all of them."""
        return None

    def slice(self, start: int, stop: int) -> Slice:
        """The rows from `start` up to `stop`, and the total, both of one snapshot."""
        if stop > MAX_OFFSET:
            return [], self.count()
        rows = self._fetch_slice(start, stop)
        if not rows:
            # No row carries the total. If it is not zero, the rows came after the page was read.
            total = self.count()
            if total <= start:
                return [], total
            rows = self._fetch_slice(start, stop)
        # Deleted again: there were at most `start` rows at that moment.
        return rows, rows[0].list_total if rows else start

    def _fetch_slice(self, start: int, stop: int) -> list[Any]:
        if start < MAX_NEAR_OFFSET or not self.counted:
            return self.fetch(KeysetQuery.build_slice, start, stop)
        if self.ordering.field == "id":
            return self.fetch(KeysetQuery.build_slice_by_id, stop - start, start=start)
        total = self.count()
        if start >= total:
            return []
        if start >= total // 2:
            rows = self.fetch(KeysetQuery.build_slice_from_end, max(total - stop, 0), total - start)
            # Otherwise the offset from the end was computed with another total than that of the rows' snapshot.
            if rows and rows[0].list_total == total:
                return rows
        return self.fetch(KeysetQuery.build_slice, start, stop)

    def build_slice_by_id(self, limit: int, *, start: Any) -> QuerySet[Any]:
        """The slice at offset `start` in the order of ids, which the row counts find."""
        counted: Any = self.counted
        first = counted.get_id_at(start, descending=self.ordering.descending)
        lookup = "pk__lte" if self.ordering.descending else "pk__gte"
        if self.parts == [self.queryset]:
            # The primary key has the rows in this order. Among those of a part, PostgreSQL might step over the rows of
            # all others, so the keys of a part are read first, which an index of its own holds.
            return self._with_total(self.ordering.apply(self.queryset.filter(**{lookup: first}))[:limit])
        parts = [part.filter(**{lookup: RawSQL("(SELECT id FROM first)", [])}) for part in self.parts]
        return self.build_by_keys(parts, 0, limit, first=first)

    def build_slice(self, start: int, stop: int) -> QuerySet[Any]:
        """A slice, by a walk from the beginning of the list."""
        if len(self.parts) > 1 or start >= MAX_NEAR_OFFSET:
            return self.build_by_keys(self.parts, start, stop)
        return self._with_total(self.ordering.apply(self.parts[0])[start:stop])

    def build_slice_from_end(self, start: int, stop: int) -> QuerySet[Any]:
        """A slice whose bounds count from the end of the list, by a walk from there."""
        return self.build_by_keys(self.parts, start, stop, backwards=True)

    def build_by_keys(
        self,
        parts: Sequence[QuerySet[Any]],
        start: int,
        stop: int,
        *,
        first: RawSQL | None = None,
        backwards: bool = False,
    ) -> QuerySet[Any]:
        """A slice, by a walk along the sort keys alone: the indexes hold them, and not the rows.

        Args:
            first: what the parts know by this name.
        """
        sql, params = self.select_keys(parts, start, stop, backwards=backwards)
        if first:
            sql, params = f"WITH first (id) AS {first.sql} {sql}", (*first.params, *params)
        ids = RawSQL(f"(SELECT id FROM ({sql}) AS keys)", params)
        return self._with_total(self.ordering.apply(self.get_rows(ids)))

    def get_rows(self, ids: RawSQL) -> QuerySet[Any]:
        """The rows with these ids, without what annotations of the list add."""
        return self._read_columns(self.model._default_manager.filter(pk__in=ids))

    def _read_columns(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.columns is None else rows.defer(None).only(*self.columns)

    def select_keys(
        self, parts: Sequence[QuerySet[Any]], start: int, stop: int, *, backwards: bool = False
    ) -> tuple[str, Sequence[Any]]:
        """Selects a slice of the sort keys of parts, in SQL with its parameters."""
        columns = self.ordering.columns
        keys = merge_slices([part.values(*columns) for part in parts], self.ordering, start, stop, backwards)
        return compile_queryset(keys)

    def _with_total(self, page: QuerySet[Any]) -> QuerySet[Any]:
        return self.with_related(page).annotate(list_total=self.get_total())

    def get_total(self) -> RawSQL:
        """The total of the list, as an expression."""
        if self.counted:
            return self.counted.get_total()
        sql, params = compile_queryset(self.queryset.order_by().values("pk"))
        return RawSQL(f"(SELECT count(*) FROM ({sql}) AS counted)", params)

    # --- By cursor

    def seek(self, position: CursorPosition | None, limit: int) -> Side:
        """The rows nearest to a position on its side of the key, and whether there are rows on the other side.

        Both are of one snapshot. Backwards, the rows come in reverse list order.

        Args:
            position: where the list is entered; None for its beginning.
            limit: the maximum number of rows to read.
        """
        if position is None:
            return Side(self.fetch(KeysetQuery.build_seek, None, limit), False)
        key = {f"key_{index}": value for index, value in enumerate(position.key)}
        rows = self.fetch(KeysetQuery.build_seek, position.comparison, limit, **key)
        if rows:
            return Side(rows, rows[0].other_side is not None)
        # No row says it.
        return Side([], bool(self.fetch(KeysetQuery.build_seek, position.opposite.comparison, 1, **key)))

    def build_seek(self, comparison: str | None, limit: int, **key: Any) -> QuerySet[Any]:
        """By one row comparison with a key, which the index of the order serves directly."""
        if comparison is None:
            return self.with_related(merge_slices(self.parts, self.ordering, 0, limit))
        position = CursorPosition(comparison, tuple(key.values()))
        other_side = self._get_other_side(position)
        parts = self.divide_at(position)
        if len(parts) == 1:
            rows = self.with_related(merge_slices(parts, self.ordering, 0, limit, position.backwards))
            return rows.annotate(other_side=other_side)
        # A union cannot be annotated.
        parts = [part.annotate(other_side=other_side) for part in parts]
        return self.with_related(merge_slices(parts, self.ordering, 0, limit, position.backwards))

    def _get_other_side(self, position: CursorPosition) -> Any:
        """The id of a row on the other side of a position, NULL where there is none.

        Not EXISTS, for which PostgreSQL reads a table from its beginning where it believes that many rows match.
        """
        opposite = position.opposite
        nearest = [
            Subquery(self.ordering.apply(part, backwards=opposite.backwards).values("pk")[:1])
            for part in self.divide_at(opposite)
        ]
        # The first one that is there is enough; the others are not looked for.
        return Coalesce(*nearest) if len(nearest) > 1 else nearest[0]

    def divide_at(self, position: CursorPosition) -> list[QuerySet[Any]]:
        """The rows of each part on the position's side of its key."""
        comparison = position.comparison
        lookup = _LOOKUPS[_MIRRORED[comparison] if self.ordering.descending else comparison]
        columns = Tuple(*map(F, self.ordering.columns))
        return [part.filter(lookup(columns, position.key)) for part in self.parts]

    # --- As a whole

    def build_all(self) -> QuerySet[Any]:
        """All rows, in the order of the list."""
        return self.with_related(self.ordering.apply(self.queryset))

    # --- By offset and by cursor

    def fetch(self, build: Callable[..., QuerySet[Any]], *args: Any, **values: Any) -> list[Any]:
        """The rows of a page.

        Args:
            build: the method that makes the queryset, or of which a subclass has its own.
            args: what shapes its SQL.
            values: what differs between two requests for the same SQL.
        """
        return list(getattr(self, build.__name__)(*args, **values))


def divide(
    queryset: QuerySet[Any], counts: row_counts.Counts, chosen: Mapping[str, Sequence[str]]
) -> list[QuerySet[Any]]:
    """A queryset for each combination of values of the counted columns.

    Args:
        chosen: the values of some columns; the others have all of theirs.
    """
    if queryset.query.is_empty():
        # Django's union omits `none()`, and is then no longer a union.
        return [queryset]
    values = (chosen.get(column) or counts.get_values(column) for column in counts.columns)
    return [queryset.filter(**dict(zip(counts.columns, part, strict=True))) for part in product(*values)]


def merge_slices(
    parts: Sequence[QuerySet[Any]], ordering: Ordering, start: int, stop: int, backwards: bool = False
) -> QuerySet[Any]:
    """The slice from `start` up to `stop` of the parts taken together, none of which is read any further."""
    if len(parts) == 1:
        return ordering.apply(parts[0], backwards=backwards)[start:stop]
    slices = [ordering.apply(part, backwards=backwards)[:stop] for part in parts]
    return ordering.apply(slices[0].union(*slices[1:], all=True), backwards=backwards)[start:stop]


def has_index(model: type[Model], columns: Sequence[str]) -> bool:
    """Whether an index of a model has these columns, in this order."""
    meta: Any = model._meta
    keys = ([meta.get_field(name).attname for name in index.fields] for index in meta.indexes)
    return list(columns) == ["id"] or list(columns) in keys
