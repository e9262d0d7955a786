"""Lists whose filters leave any number of rows: read from an index in parts, and counted up to a bound."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from config.api.listing.cursors import CursorPosition
from config.api.listing.filters import Ordering, StrictFilterSet
from config.api.listing.keyset import KeysetQuery, WithRelated
from config.postgresql.compiling import compile_queryset

# The maximum number of rows to count where counts are not kept.
MAX_COUNTED = 10_000


class BoundedKeysetQuery(KeysetQuery):
    """A KeysetQuery under filters that came with a later version.

    Args:
        filterset_class: of the filters.
        is_rare: whether few rows have the words that are searched for.

    Attributes:
        listed: of a foreign key for which there are several ids, its column and the ids: the rows of each are read
            from an index, and merged.
    """

    def __init__(
        self,
        queryset: QuerySet[Any],
        ordering: Ordering,
        filters: Mapping[str, str],
        with_related: WithRelated,
        filterset_class: type[StrictFilterSet],
        *,
        is_rare: bool = False,
    ) -> None:
        # So few rows remain, whatever the size of the table, that any order is fast.
        self._is_small = is_rare or filterset_class.is_small(filters)
        several = {column: ids for column, ids in filterset_class.get_ids(filters).items() if len(ids) > 1}
        self.listed = None if self._is_small else next(iter(several.items()), None)
        super().__init__(queryset, ordering, filters, with_related)
        self.is_bounded = not self.counted and not self._is_small
        # This may not depend on how many rows have a word.
        self.is_paged_up_to_bound = self.is_bounded or is_rare
        if self.listed:
            # Nothing but the name of a column of the statement around it.
            self.parts = [queryset.filter(**{self.listed[0]: RawSQL("listed.value", [])})]

    def is_divided(self, counted: Collection[str], filters: Collection[str]) -> bool:
        return bool(counted) and not self._is_small

    def get_least(self, total: int) -> int | None:
        return MAX_COUNTED if self.is_bounded and total > MAX_COUNTED else None

    def format_order(self, *, backwards: bool) -> str:
        """What SQL orders the keys by."""
        direction = "DESC" if self.ordering.descending != backwards else "ASC"
        return ", ".join(f"{column} {direction}" for column in self.ordering.columns)

    def get_total(self) -> RawSQL:
        if not self.is_bounded:
            return super().get_total()
        # In the order of the list, so that the rows are counted in the index that has them next to each other.
        keys, params = self.select_keys(self.parts, 0, MAX_COUNTED + 1, is_sorted=False)
        return RawSQL(f"(SELECT count(*) FROM ({keys}) AS counted)", params)

    def build_slice(self, start: int, stop: int) -> QuerySet[Any]:
        return self.build_by_keys(self.parts, start, stop) if self.listed else super().build_slice(start, stop)

    def build_seek(self, comparison: str | None, limit: int, **key: Any) -> QuerySet[Any]:
        if not self.listed:
            return super().build_seek(comparison, limit, **key)
        if comparison is None:
            return self.with_related(self._get_rows(self.parts, limit))
        position = CursorPosition(comparison, tuple(key.values()))
        rows = self.with_related(self._get_rows(self.divide_at(position), limit, backwards=position.backwards))
        opposite = position.opposite
        keys, params = self.select_keys(self.divide_at(opposite), 0, 1, backwards=opposite.backwards)
        return rows.annotate(other_side=RawSQL(f"(SELECT id FROM ({keys}) AS other)", params))

    def _get_rows(self, parts: Sequence[QuerySet[Any]], limit: int, *, backwards: bool = False) -> QuerySet[Any]:
        keys, params = self.select_keys(parts, 0, limit, backwards=backwards)
        rows = self.get_rows(RawSQL(f"(SELECT id FROM ({keys}) AS keys)", params))
        return self.ordering.apply(rows, backwards=backwards)

    def select_keys(
        self, parts: Sequence[QuerySet[Any]], start: int, stop: int, *, backwards: bool = False, is_sorted: bool = True
    ) -> tuple[str, Sequence[Any]]:
        if not self.listed:
            if is_sorted or len(parts) == 1:
                return super().select_keys(parts, start, stop, backwards=backwards)
            slices = [self.ordering.apply(part.values("pk"))[:stop] for part in parts]
            merged: QuerySet[Any] = slices[0].union(*slices[1:], all=True)
            return compile_queryset(merged[:stop])
        part = self.ordering.apply(parts[0].values(*self.ordering.columns), backwards=backwards)[:stop]
        sql, params = compile_queryset(part)
        lateral = f"unnest(%s::bigint[]) AS listed (value) CROSS JOIN LATERAL ({sql}) AS keys"
        ordered = f"ORDER BY {self.format_order(backwards=backwards)}" if is_sorted else ""
        limits = f"LIMIT {stop - start} OFFSET {start}"
        return f"SELECT keys.* FROM {lateral} {ordered} {limits}", (self.listed[1], *params)
