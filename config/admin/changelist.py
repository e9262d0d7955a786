"""The change lists of the admin: a page, a filter and a search cost the same for a thousand rows and for millions.

A change list offers only the orders, searches and filters that an index serves. Where no trigger maintains the total,
rows are counted up to a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.contrib.admin import ModelAdmin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.filters import SimpleListFilter
from django.contrib.admin.views import main
from django.core.exceptions import FieldError, ValidationError
from django.core.paginator import InvalidPage, Page, Paginator
from django.db import DataError
from django.db.models import DateField, ForeignKey, IntegerField, Model, QuerySet, prefetch_related_objects
from django.db.models.expressions import Combinable
from django.http import HttpRequest
from django.utils.functional import cached_property

from config.admin import bounded_count
from config.api.listing.filters import Ordering
from config.api.listing.keyset import KeysetQuery
from config.postgresql import row_counts
from config.postgresql.words import (
    MAX_RUN,
    MAX_WORD,
    MAX_WORDS,
    IsAmongRowsWithWord,
    get_words,
    is_unspaced,
    split_words,
)

# Raised by a filter, an order or a selection that no link or form of the admin produces.
INVALID_LOOKUP_ERRORS = (DataError, DisallowedModelAdminLookup, FieldError, ValidationError, ValueError)
# Without a maintained total, rows are counted and paged up to here. It also bounds OFFSET in an order other than by id.
MAX_COUNT = bounded_count.MAX_COUNT
# For each search field.
MAX_MATCHES = 1_000
MAX_SEARCH_LENGTH = 100
# Any number with this many digits fits into a bigint.
MAX_ID_DIGITS = 18


class BoundedPaginator(Paginator):
    """Counts and pages the first `max_count` rows of a queryset.

    Attributes:
        has_more: whether the queryset has further rows.
    """

    def __init__(self, queryset: QuerySet[Model], per_page: int, max_count: int) -> None:
        super().__init__(queryset, per_page)
        self.queryset = queryset
        self.max_count = max_count

    @cached_property
    def _bounded_count(self) -> int:
        return self.queryset.order_by().values("pk")[: self.max_count + 1].count()

    @cached_property
    def has_more(self) -> bool:
        return self._bounded_count > self.max_count

    @cached_property
    def count(self) -> int:
        return min(self._bounded_count, self.max_count)


class CountedPaginator(Paginator):
    """Pages rows whose total triggers maintain; in the order of ids it also seeks distant pages by these counts."""

    has_more = False

    def __init__(self, query: KeysetQuery, per_page: int) -> None:
        super().__init__(query.queryset, per_page)
        self.query = query

    @cached_property
    def count(self) -> int:
        return self.query.count()

    @cached_property
    def num_pages(self) -> int:
        """All pages in the order of ids. In another order a page is reached by OFFSET, which MAX_COUNT bounds."""
        pages = super().num_pages
        return pages if self.query.ordering.field == "id" else min(pages, MAX_COUNT // self.per_page)

    def page(self, number: int | str) -> Page:
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        rows, _ = self.query.slice(start, start + self.per_page)
        return Page(rows, number, self)


class ChangeList(main.ChangeList):
    """Django's change list, ordered by one indexed column, with the primary key as the tie-breaker."""

    max_search_length = MAX_SEARCH_LENGTH

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Model]) -> list[str | Combinable]:
        return build_order_by(self.model, *self._get_order())

    def _get_order(self) -> tuple[str, bool]:
        """Returns the column to order by, and whether the order is descending."""
        parameter = self.params.get(main.ORDER_VAR, "").partition(".")[0]
        index = parameter.removeprefix("-")
        if index.isdecimal() and int(index) < len(self.list_display):
            column = self.list_display[int(index)]
            if column in (self.sortable_by or ()):
                return str(column), parameter.startswith("-")
        for column in get_date_fields(self.model, self.list_filter):
            if f"{column}__gte" in self.params:
                # In the order of ids, PostgreSQL might walk the whole primary key to fill a page from this period.
                return column, True
        for list_filter in self.list_filter:
            column = getattr(list_filter, "index_continues_with", "")
            if column and getattr(list_filter, "parameter_name", "") in self.params:
                return column, True
        page: Any = self.model_admin
        if any(f"{lookup}__exact" in self.params for lookup in page.linked_filters):
            return parse_order(page.get_linked_ordering())
        return parse_order(str(next(iter(page.ordering or self.lookup_opts.ordering or ()))))

    def get_ordering_field_columns(self) -> dict[int, Literal["desc", "asc"]]:
        """Marks the one column that `get_ordering` orders by."""
        column, descending = self._get_order()
        if column not in self.list_display:
            return {}
        return {list(self.list_display).index(column): "desc" if descending else "asc"}

    def get_results(self, request: HttpRequest) -> None:
        self.paginator = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        self.result_count = self.paginator.count
        self.show_full_result_count = False
        self.full_result_count = None
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = self.result_count > self.list_per_page
        try:
            rows = self.paginator.page(self.page_num).object_list
        except InvalidPage:
            # Rows of the last page were deleted since, or the address was written by hand.
            self.page_num = self.paginator.num_pages
            rows = self.paginator.page(self.page_num).object_list
        self.result_list = list(rows)
        # One statement a page. A join would also be run for each part that a filtered list is read as.
        users = {"user_link": "user", "owner_link": "owner"}
        prefetch_related_objects(self.result_list, *(users[name] for name in self.list_display if name in users))


def parse_order(order: str) -> tuple[str, bool]:
    """Returns the column of an order such as `-id`, and whether the order is descending."""
    return order.removeprefix("-"), order.startswith("-")


def build_order_by(model: type[Model], column: str, descending: bool) -> list[str | Combinable]:
    """Returns the arguments of `order_by`, with the primary key as the tie-breaker.

    Args:
        model: whose rows are ordered.
        column: the one to order by.
        descending: whether the order is descending.
    """
    sign = "-" if descending else ""
    return [f"{sign}pk"] if column in {"pk", model._meta.pk.name} else [f"{sign}{column}", f"{sign}pk"]


def build_paginator(
    queryset: QuerySet[Model], filters: Mapping[str, str], per_page: int, *, is_search: bool
) -> Paginator:
    """Builds the paginator of a change list.

    Args:
        queryset: the rows, filtered and ordered.
        filters: the values that `queryset` is filtered by, of columns that the row counts distinguish. It may have
            further filters.
        per_page: rows on a page.
        is_search: whether `queryset` is the result of a search, which matches MAX_MATCHES rows at most.

    Returns:
        A CountedPaginator where the row counts know the total of `queryset`, or else a BoundedPaginator.
    """
    counts = row_counts.get_counts(queryset.model)
    if counts and counts.filter(queryset, {name: [value] for name, value in filters.items()}):
        first, *_ = map(str, queryset.query.order_by)
        column = first.removeprefix("-")
        ordering = Ordering("id" if column == "pk" else column, first.startswith("-"))
        return CountedPaginator(KeysetQuery(queryset, ordering, filters), per_page)
    return BoundedPaginator(queryset, per_page, MAX_MATCHES if is_search else MAX_COUNT)


def build_matches(queryset: QuerySet[Model], search_fields: Sequence[str], search_term: str) -> list[QuerySet[Model]]:
    """Builds a queryset for each search field, so that each is answered by its own index.

    Args:
        queryset: the rows to search.
        search_fields: a column, which is compared for equality, or `column__startswith`.
        search_term: the text to search for. Integer columns are skipped unless it is a number.
    """
    matches = []
    for search_field in search_fields:
        column, _, lookup = search_field.partition("__")
        if not _is_integer(queryset.model, column):
            matches.append(queryset.filter(**{f"{column}__{lookup or 'exact'}": search_term}))
        elif search_term.isascii() and search_term.isdecimal() and len(search_term) <= MAX_ID_DIGITS:
            matches.append(queryset.filter(**{column: int(search_term)}))
    return matches


def filter_words(queryset: QuerySet[Model], search_term: str) -> QuerySet[Model]:
    """Filters the rows as `q` of the API does: each word begins a word of the row, in any case and without accents."""
    words: Any = get_words(queryset.model)
    looked_for = split_words(search_term, queryset.db)[:MAX_WORDS]
    stored = [word[: MAX_RUN if is_unspaced(word) else MAX_WORD] for word in looked_for]
    conditions = [IsAmongRowsWithWord(words, word) for word in stored]
    return queryset.filter(*conditions) if conditions else queryset.none()


def _is_integer(model: type[Model], column: str) -> bool:
    field = model._meta.get_field(column)
    return isinstance(field.target_field if isinstance(field, ForeignKey) else field, IntegerField)


def filter_any(queryset: QuerySet[Model], matches: Sequence[QuerySet[Model]]) -> QuerySet[Model]:
    """Filters `queryset` by the union of `matches`, of which each contributes MAX_MATCHES + 1 rows at most.

    The limit is for short prefixes: one letter may match half a table. The union replaces an OR, for which PostgreSQL
    would not use the indexes.
    """
    if not matches:
        return queryset.none()
    keys = [match.order_by().values("pk")[: MAX_MATCHES + 1] for match in matches]
    return queryset.filter(pk__in=keys[0].union(*keys[1:]) if keys[1:] else keys[0])


def get_date_fields(model: type[Model], list_filter: Sequence[object]) -> list[str]:
    """Returns the names in `list_filter` that are date columns of `model`, in their order."""
    dates = {field.name for field in model._meta.get_fields() if isinstance(field, DateField)}
    return [name for name in list_filter if isinstance(name, str) and name in dates]


class ChoiceListFilter(SimpleListFilter):
    """An equality filter on the column `parameter_name` with fixed options, so that no query collects the values.

    Attributes:
        options: pairs of a value and its label.
        index_continues_with: the column by which filtered rows are ordered, descending, because their index is.
    """

    options: Sequence[tuple[str, str]] = ()
    index_continues_with = ""

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Sequence[tuple[str, str]]:
        return self.options

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model] | None:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value in dict(self.options) else None
