"""The rows that refer to a row, for the row's own page: how many of each model, and the latest ones.

A model is shown where its change list can be filtered by the row (`linked_filters`): so the filter leads to all of the
rows, along the same index, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import display_for_field, display_for_value, label_for_field, lookup_field, quote
from django.db.models import ForeignKey, Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst

from config.admin import bounded_count, changelist
from config.admin.base import ServiceAdmin

LATEST = 5


@dataclass(frozen=True)
class RelatedRows:
    """The rows of one model that refer to a row.

    Attributes:
        name: the model's plural.
        total: how many there are, as text.
        url: the change list of all of them.
        columns: the heads of the change list's columns.
        latest: the cells of the latest rows, the first of each a link to the row's page.
    """

    name: str
    total: str
    url: str
    columns: Sequence[str]
    latest: Sequence[Sequence[str]]


class _Reference(NamedTuple):
    """A foreign key by which the rows of a model refer to a row.

    Attributes:
        page: the admin of the model.
        lookup: the filter of its change list.
        key: the value of the filter, the primary key of the row.
    """

    page: ServiceAdmin
    lookup: str
    key: object

    @property
    def field_name(self) -> str:
        return self.lookup.partition("__")[0]

    def get_rows(self, request: HttpRequest) -> QuerySet[Model]:
        return self.page.get_queryset(request).filter(**{self.lookup: self.key})

    def get_url(self) -> str:
        opts = self.page.opts
        path = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
        return f"{path}?{self.lookup}__exact={self.key}"


def fetch_related_rows(site: AdminSite, request: HttpRequest, row: Model) -> list[RelatedRows]:
    """Reads what refers to a row: by one statement all totals, and by one for each model the latest rows.

    Args:
        site: the admin whose models are asked.
        request: of the user who looks; what this user may not view is left out.
        row: the row that is referred to.
    """
    references = [each for each in _find_references(site, row) if each.page.has_view_related_permission(request, row)]
    querysets = [each.get_rows(request) for each in references]
    counts = bounded_count.fetch_counts(type(row), row.pk, [bounded_count.limit(rows) for rows in querysets])
    return [_describe(*each) for each in zip(references, querysets, counts, strict=True)]


def _find_references(site: AdminSite, row: Model) -> Iterator[_Reference]:
    """The references by which a change list can be filtered, those of the apps first."""
    pages = [page for page in site._registry.values() if isinstance(page, ServiceAdmin)]
    for page in sorted(pages, key=lambda page: page.opts.app_label == "config"):
        for lookup in page.linked_filters:
            reference = _Reference(page, lookup, row.pk)
            if page.opts.get_field(reference.field_name).related_model is type(row):
                yield reference


def _describe(reference: _Reference, rows: QuerySet[Model], count: int) -> RelatedRows:
    page = reference.page
    columns = [str(column) for column in page.list_display if column != f"{reference.field_name}_link"]
    order = changelist.parse_order(page.get_linked_ordering())
    latest = rows.order_by(*changelist.build_order_by(page.model, *order))[:LATEST]
    if isinstance(page.list_select_related, tuple):
        latest = latest.select_related(*page.list_select_related)
    return RelatedRows(
        name=str(page.opts.verbose_name_plural),
        total=bounded_count.describe(count),
        url=reference.get_url(),
        columns=[capfirst(str(label_for_field(column, page.model, page))) for column in columns],
        latest=[
            [_build_link(page, each, columns[0]), *(_build_cell(page, each, name) for name in columns[1:])]
            for each in latest
        ],
    )


def _build_link(page: ServiceAdmin, row: Model, column: str) -> str:
    url = reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_change", args=[quote(row.pk)])
    return format_html('<a href="{}">{}</a>', url, _build_cell(page, row, column))


def _build_cell(page: ServiceAdmin, row: Model, column: str) -> str:
    """A value as the change list shows it."""
    field, _, value = lookup_field(column, row, page)
    empty = page.get_empty_value_display()
    if field is None:
        return display_for_value(value, empty)
    if isinstance(field, ForeignKey):
        return str(getattr(row, field.name) or empty)
    return display_for_field(value, field, empty)
