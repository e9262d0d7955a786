"""The lists of the admin: of a million rows, a page, a filter and a search cost what they cost of a thousand.

They show no order, search or filter for which there is no index, and count no further than anybody leafs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.filters import SimpleListFilter
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.exceptions import FieldError, ValidationError
from django.core.paginator import InvalidPage, Page, Paginator
from django.db import DataError
from django.db.models import DateField, IntegerField, Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from config.api.listing.keyset import ListedRows
from config.api.listing.ordering import Ordering
from config.postgresql import row_counts

# What comes of a filter, an order or a selection that no link of a page has made.
NONSENSE = (DataError, DisallowedModelAdminLookup, FieldError, ValidationError, ValueError)
# How far rows are counted that nothing counts yet, and how far one leafs through them.
MOST = 10_000
# How many of those that match a search are looked at, in each way of matching.
MOST_FOUND = 1_000
# Of what is searched for.
LONGEST_SEARCH = 100
# Ids have no more digits.
DIGITS = 18


class BoundedPaginator(Paginator):
    """Pages of the first rows, up to `bound`.

    Attributes:
        more: whether there are further ones.
    """

    def __init__(self, rows: QuerySet[Any], per_page: int, bound: int) -> None:
        super().__init__(rows, per_page)
        self.bound = bound

    @cached_property
    def _found(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: self.bound + 1].count())

    @cached_property
    def more(self) -> bool:
        return self._found > self.bound

    @cached_property
    def count(self) -> int:
        return min(self._found, self.bound)


class CountedPaginator(Paginator):
    """Pages of rows whose number is kept, with the way to the most distant one (config.api.listing.keyset)."""

    more = False

    def __init__(self, listed: ListedRows, per_page: int) -> None:
        super().__init__(listed.rows, per_page)
        self.listed = listed

    @cached_property
    def count(self) -> int:
        return self.listed.total()

    @cached_property
    def num_pages(self) -> int:
        """In the order of ids all. In another one the way to a distant page leads over all that come before it."""
        pages = super().num_pages
        return pages if self.listed.ordering.field == "id" else min(pages, MOST // self.per_page)

    def page(self, number: Any) -> Any:
        start = (self.validate_number(number) - 1) * self.per_page
        rows, _ = self.listed.page(start, start + self.per_page)
        return Page(rows, number, self)


class List(ChangeList):
    """A list in one order: that of an indexed column, and of ids where it is the same."""

    longest_search = LONGEST_SEARCH

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        column, descending = self._order()
        sign = "-" if descending else ""
        return [f"{sign}pk"] if column in {"pk", self.lookup_opts.pk.name} else [f"{sign}{column}", f"{sign}pk"]

    def _order(self) -> tuple[str, bool]:
        """The column to order by, and whether descending."""
        asked = self.params.get(ORDER_VAR, "").partition(".")[0]
        index = asked.removeprefix("-")
        if index.isdecimal() and int(index) < len(self.list_display):
            column = self.list_display[int(index)]
            if column in (self.sortable_by or ()):
                return str(column), asked.startswith("-")
        for column in get_date_fields(self.model, self.list_filter):
            if f"{column}__gte" in self.params:
                # The newest of a time: in the order of ids PostgreSQL would look for them through the whole table.
                return column, True
        default = str(next(iter(self.model_admin.ordering or self.lookup_opts.ordering or ())))
        return default.removeprefix("-"), default.startswith("-")

    def get_ordering_field_columns(self) -> dict[int, Any]:
        """What the heads of the columns show: the order there is."""
        column, descending = self._order()
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
            self.result_list = self.paginator.page(self.page_num).object_list
        except InvalidPage:
            # Its last rows went, or the address was made by hand.
            self.page_num = self.paginator.num_pages
            self.result_list = self.paginator.page(self.page_num).object_list


def paginator(rows: QuerySet[Any], filters: dict[str, str], per_page: int, *, searched: bool) -> Paginator:
    """Pages of a list that was filtered by the equality of these columns, and perhaps by more."""
    counts = row_counts.of(rows.model)
    if counts and counts.under(filters, rows):
        first, *_ = map(str, rows.query.order_by)
        column = first.removeprefix("-")
        ordering = Ordering("id" if column == "pk" else column, first.startswith("-"))
        return CountedPaginator(ListedRows(rows, ordering, filters, shown=lambda page: page), per_page)
    return BoundedPaginator(rows, per_page, MOST_FOUND if searched else MOST)


def found(rows: QuerySet[Any], lookups: Sequence[str], term: str) -> list[QuerySet[Any]]:
    """The ways in which rows match a term, each of them by an index.

    Args:
        lookups: a column, which then equals the term, or `column__startswith`.
    """
    ways = []
    for lookup in lookups:
        column, _, prefix = lookup.partition("__")
        if _is_number(rows, column):
            if term.isascii() and term.isdecimal() and len(term) <= DIGITS:
                ways.append(rows.filter(**{column: int(term)}))
        else:
            ways.append(rows.filter(**{f"{column}__{prefix or 'exact'}": term}))
    return ways


def _is_number(rows: QuerySet[Any], column: str) -> bool:
    field: Any = rows.model._meta.get_field(column)
    return isinstance(field.target_field if field.is_relation else field, IntegerField)


def any_of(rows: QuerySet[Any], ways: Sequence[QuerySet[Any]]) -> QuerySet[Any]:
    """The rows that match in any of the ways. Of each way the first alone: a letter matches half a table."""
    if not ways:
        return rows.none()
    # By themselves: PostgreSQL gives up on indexes for an OR.
    keys = [way.order_by().values("pk")[: MOST_FOUND + 1] for way in ways]
    return rows.filter(pk__in=keys[0].union(*keys[1:]) if keys[1:] else keys[0])


def get_date_fields(model: type[Model], list_filter: Sequence[object]) -> list[str]:
    """The names in `list_filter` that are date columns of `model`, in their order."""
    dates = {field.name for field in model._meta.get_fields() if isinstance(field, DateField)}
    return [name for name in list_filter if isinstance(name, str) and name in dates]


class Choice(SimpleListFilter):
    """A filter whose choices are known, without a look through the table for what there is."""

    values: Sequence[tuple[str, str]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return self.values

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value in dict(self.values) else None
