"""Lists whose filters leave any number of rows: read from an index in parts, and counted up to a bound.

Some are searched by `q`: every word of it begins a word of the row. No index has the rows of several words in the order
of a list. A page is read in one of two ways, neither of which looks at more than a bounded number of rows. Where one of
the words is rare, or two of them together, all rows that have them are looked at, and everything is exact. Where all
are common, the list is read in its own order, up to MAX_LOOKED_AT rows a page: such a page may have fewer rows than it
could, and the next one continues after the last row that was looked at.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from config.api.listing.cursors import CursorPosition
from config.api.listing.filters import SEARCH, Ordering, StrictFilterSet
from config.api.listing.keyset import KeysetQuery, Side, Slice, WithRelated
from config.api.listing.query import QueryParameters
from config.postgresql.compiling import compile_queryset, fetch_rows
from config.postgresql.words import (
    MAX_RUN,
    MAX_WORD,
    MAX_WORDS,
    UNSPACED,
    HasWord,
    IsAmongRowsWithWord,
    Words,
    find_rare,
    get_words,
    split_words,
)

# The maximum number of rows to count where counts are not kept.
MAX_COUNTED = 10_000
# The maximum number of rows to look at for a page of common words.
MAX_LOOKED_AT = 2_500


class BoundedKeysetQuery(KeysetQuery):
    """A KeysetQuery under filters that came with a later version.

    Args:
        filterset_class: of the filters.
        is_rare: whether few rows have the words that are searched for.

    Attributes:
        listed: of a foreign key for which there are several ids, its column and the ids: the rows of each are read
            from an index, and merged.
    """

    takes_several_values = True

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
            return compile_queryset(slices[0].union(*slices[1:], all=True)[:stop])
        part = self.ordering.apply(parts[0].values(*self.ordering.columns), backwards=backwards)[:stop]
        sql, params = compile_queryset(part)
        lateral = f"unnest(%s::bigint[]) AS listed (value) CROSS JOIN LATERAL ({sql}) AS keys"
        ordered = f"ORDER BY {self.format_order(backwards=backwards)}" if is_sorted else ""
        limits = f"LIMIT {stop - start} OFFSET {start}"
        return f"SELECT keys.* FROM {lateral} {ordered} {limits}", (self.listed[1], *params)


# --- Searched by `q`


def parse_words(text: str, queryset: QuerySet[Any], parameters: QueryParameters) -> Sequence[str]:
    """The words of `q`; what is wrong with them is refused in `parameters`."""
    words = split_words(text, queryset.db)
    if not words:
        parameters.refuse(SEARCH, "Must contain a letter or a digit.")
    if len(words) > MAX_WORDS:
        parameters.refuse(SEARCH, f"Must have at most {MAX_WORDS} different words.")
    if any(len(word) > (MAX_RUN if UNSPACED.match(word) else MAX_WORD) for word in words):
        parameters.refuse(
            SEARCH,
            f"Words can have at most {MAX_WORD} characters ({MAX_RUN} in scripts without spaces). "
            "Send only the start of a longer word.",
        )
    return words if not parameters.problems else ()


def build_search(looked_for: Sequence[str], queryset: QuerySet[Any], *arguments: Any) -> BoundedKeysetQuery:
    """The rows of a list that have words.

    Args:
        looked_for: the beginnings of the words, folded.
        queryset: the list.
        arguments: the others of a BoundedKeysetQuery.
    """
    words: Any = get_words(queryset.model)
    rare = find_rare(words, looked_for, queryset.db)
    if not rare:
        return CommonWordsQuery(words, looked_for, queryset, *arguments)
    others = [word for word in looked_for if word not in rare]
    conditions = [IsAmongRowsWithWord(words, word) for word in rare]
    rows = queryset.filter(*conditions, *(HasWord(words, word) for word in others))
    return BoundedKeysetQuery(rows, *arguments, is_rare=True)


class CommonWordsQuery(BoundedKeysetQuery):
    """The rows of a list that have words, each of which many rows have.

    Attributes:
        is_complete: whether the last look ended with the list.
    """

    is_complete = True

    def __init__(self, words: Words, looked_for: Sequence[str], *arguments: Any) -> None:
        super().__init__(*arguments)
        self.counted = None
        self.is_bounded = self.is_paged_up_to_bound = True
        self._conditions = [HasWord(words, word) for word in looked_for]
        compiled = [condition.build_sql("near.id") for condition in self._conditions]
        self._condition = " AND ".join(sql for sql, _ in compiled)
        self._params = [param for _, params in compiled for param in params]
        # When the lists of several ids are merged, this many keys of each are read.
        self._most = MAX_LOOKED_AT // len(self.listed[1]) if self.listed else MAX_LOOKED_AT

    def get_least(self, total: int) -> int | None:
        return None if self.is_complete else total

    def build_all(self) -> QuerySet[Any]:
        return self.with_related(self.ordering.apply(self.queryset.filter(*self._conditions)))

    def count(self) -> int:
        _, total = self.slice(0, 0)
        return total

    def slice(self, start: int, stop: int) -> Slice:
        found, reached = self._look(self.parts, None, backwards=False)
        self.is_complete = reached is None
        return self._fetch(found[start:stop], backwards=False), len(found)

    def seek(self, position: CursorPosition | None, limit: int) -> Side:
        if position is None:
            parts, backwards, has_others = self.parts, False, False
        else:
            parts, backwards = self.divide_at(position), position.backwards
            opposite = position.opposite
            other = self.select_keys(self.divide_at(opposite), 0, 1, backwards=opposite.backwards)
            has_others = bool(fetch_rows(*other, self.queryset.db))
        found, reached = self._look(parts, limit, backwards=backwards)
        rows = self._fetch(found, backwards=backwards)
        if len(rows) < len(found) == limit:
            # Some have been deleted since. No row may be skipped: the next page continues after the last one found.
            reached = found[-1]
        return Side(rows, has_others, reached if len(rows) < limit else None)

    def _look(
        self, parts: Sequence[QuerySet[Any]], limit: int | None, *, backwards: bool
    ) -> tuple[list[tuple[Any, ...]], tuple[Any, ...] | None]:
        """The sort keys of the nearest rows with the words, and the last key that was looked at, unless all were.

        Numbered by a window, the keys keep their order, and PostgreSQL reads only as many as it needs.
        """
        keys, params = self.select_keys(parts, 0, self._most, backwards=backwards)
        columns, order = ", ".join(self.ordering.columns), self.format_order(backwards=backwards)
        numbered = f"""
            SELECT near.*, row_number() OVER (ORDER BY {order}) AS number, ({self._condition}) AS has_words
            FROM ({keys}) AS near
        """
        looked_at = fetch_rows(
            f"SELECT {columns}, number, has_words FROM ({numbered}) AS looked_at"
            f" WHERE has_words OR number = {self._most} ORDER BY {order} LIMIT %s",
            [*self._params, *params, limit],
            self.queryset.db,
        )
        found = [key for *key, _, has_words in looked_at if has_words]
        ended = looked_at and looked_at[-1][-2] == self._most
        return list(map(tuple, found)), tuple(looked_at[-1][:-2]) if ended else None

    def _fetch(self, keys: Sequence[tuple[Any, ...]], *, backwards: bool) -> list[Any]:
        """The rows with these sort keys, but for those that have gone or changed since the keys were read."""
        ids = [key[-1] for key in keys]
        rows = self.queryset.filter(*self._conditions, pk__in=ids)
        known, get_key = set(keys), self.ordering.get_key
        return [
            row for row in self.with_related(self.ordering.apply(rows, backwards=backwards)) if get_key(row) in known
        ]
