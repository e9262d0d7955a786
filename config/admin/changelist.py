"""The change lists of the admin: a page, a filter and a search cost the same for a thousand rows and for millions.

A change list offers only the orders, searches and filters that an index serves. Where no trigger maintains the total,
rows are counted up to a limit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.contrib.admin import ModelAdmin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.filters import SimpleListFilter
from django.contrib.admin.views import main
from django.core.exceptions import FieldError, ValidationError
from django.core.paginator import Page, Paginator
from django.db import DataError
from django.db.models import ForeignKey, IntegerField, Model, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest
from django.utils.functional import cached_property

from config.api.listing.filters import Ordering
from config.api.listing.keyset import KeysetQuery
from config.postgresql.words import IsAmongRowsWithWord, get_words, split_words

# Raised by a filter, an order or a selection that no link or form of the admin produces.
INVALID_LOOKUP_ERRORS = (DataError, DisallowedModelAdminLookup, FieldError, ValidationError, ValueError)
# Without a maintained total, rows are counted and paged up to here. It also bounds OFFSET in an order other than by id,
# and the matches of each search field.
MAX_COUNT = 10_000
MAX_SEARCH_LENGTH = 100
# Any number with this many digits fits into a bigint.
MAX_ID_DIGITS = 18


class ClampingPaginator(Paginator):
    """Shows the last page in the place of a later one: its rows were deleted since, or the address was typed."""

    has_more = False

    def validate_number(self, number: int | float | str) -> int:
        return max(1, min(int(number), self.num_pages))


class BoundedPaginator(ClampingPaginator):
    """Counts and pages the first MAX_COUNT rows of a queryset.

    Attributes:
        has_more: whether the queryset has further rows.
    """

    def __init__(self, queryset: QuerySet[Model], per_page: int) -> None:
        super().__init__(queryset, per_page)
        found = queryset.order_by().values("pk")[: MAX_COUNT + 1].count()
        self.count, self.has_more = min(found, MAX_COUNT), found > MAX_COUNT


class CountedPaginator(ClampingPaginator):
    """Pages rows whose total triggers maintain; in the order of ids it also seeks distant pages by these counts.

    Args:
        queryset: the rows, filtered and ordered.
        filters: the values that `queryset` is filtered by, of columns that the row counts distinguish.
        per_page: rows on a page.
    """

    def __init__(self, queryset: QuerySet[Model], filters: Mapping[str, str], per_page: int) -> None:
        super().__init__(queryset, per_page)
        related: Any = queryset.query.select_related or [None]
        first = str(queryset.query.order_by[0])
        column = first.removeprefix("-")
        ordering = Ordering("id" if column == "pk" else column, first.startswith("-"))
        self.query = KeysetQuery(queryset, ordering, filters, lambda rows: rows.select_related(*related))

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

    def get_ordering_field(self, field_name: Any) -> Any:
        return super().get_ordering_field(field_name) if field_name in (self.sortable_by or ()) else None

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Model]) -> list[str | Combinable]:
        order = str(super().get_ordering(request, queryset)[0])
        # The tie-breaker has the same direction.
        column, sign = order.removeprefix("-"), "-" if order.startswith("-") else ""
        return [f"{sign}pk"] if column in {"pk", self.opts.pk.name} else [order, f"{sign}pk"]

    def get_ordering_field_columns(self) -> dict[int, Literal["desc", "asc"]]:
        """Marks the one column that `get_ordering` orders by."""
        return dict(list(super().get_ordering_field_columns().items())[:1])


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
    conditions = [IsAmongRowsWithWord(words, word) for word in split_words(search_term, queryset.db)]
    return queryset.filter(*conditions) if conditions else queryset.none()


def _is_integer(model: type[Model], column: str) -> bool:
    field = model._meta.get_field(column)
    return isinstance(field.target_field if isinstance(field, ForeignKey) else field, IntegerField)


def filter_any(queryset: QuerySet[Model], matches: Sequence[QuerySet[Model]]) -> QuerySet[Model]:
    """Filters `queryset` by the union of `matches`, of which each contributes MAX_COUNT + 1 rows at most.

    The limit is for short prefixes: one letter may match half a table. The union replaces an OR, for which PostgreSQL
    would not use the indexes.
    """
    if not matches:
        return queryset.none()
    keys = [match.order_by().values("pk")[: MAX_COUNT + 1] for match in matches]
    return queryset.filter(pk__in=keys[0].union(*keys[1:]) if keys[1:] else keys[0])


class ChoiceListFilter(SimpleListFilter):
    """An equality filter on the column `parameter_name` with fixed options, so that no query collects the values.

    Attributes:
        options: pairs of a value and its label.
    """

    options: Sequence[tuple[str, str]] = ()

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> Sequence[tuple[str, str]]:
        return self.options

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model] | None:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value in dict(self.options) else None
