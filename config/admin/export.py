"""Exports of change lists: CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import tablib
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from import_export.fields import Field
from import_export.formats.base_formats import CSV, JSON
from import_export.resources import Resource
from import_export.widgets import Widget

from config import audit
from config.admin.changelist import INVALID_LOOKUP_ERRORS
from config.api.representation.fields import MAX_ID
from config.api.representation.formulas import escape_formula
from config.models import SavedExport

# A file is built in memory, in the one thread of a worker: so many rows take a second.
MAX_EXPORT_ROWS = 20_000


class ExportWidget(Widget):
    """Renders a value as files carry it: times as in the API, amounts with all their digits."""

    def render(self, value: object, obj: object = None, **options: object) -> str | int | None:
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        if isinstance(value, list):
            return " ".join(value)
        return value if value is None or isinstance(value, int) else str(value)


class EscapedCSV(CSV):
    def export_data(self, dataset: tablib.Dataset, **options: object) -> str:
        cells = tablib.Dataset(*(tuple(map(escape_formula, row)) for row in dataset), headers=dataset.headers)
        return super().export_data(cells, **options)


FORMATS = {"csv": EscapedCSV, "json": JSON}


def build_dataset(fields: Sequence[str], rows: Iterable[Model]) -> tablib.Dataset:
    """The cells of rows.

    Args:
        fields: the exported columns, in order.
        rows: of one model.
    """
    columns = {name: Field(attribute=name, column_name=name, widget=ExportWidget()) for name in fields}
    return type("ExportResource", (Resource,), columns)().export(rows)


def render_rows(fields: Sequence[str], rows: Iterable[Model], format_name: str) -> bytes:
    """Rows as they stand inside of a file. The arguments are those of `build_dataset`, and a key of FORMATS."""
    dataset = build_dataset(fields, rows)
    if format_name == "json":
        return JSON().export_data(dataset)[1:-1].encode()
    dataset.headers = None
    return EscapedCSV().export_data(dataset).encode()


def render_frame(fields: Sequence[str], format_name: str) -> tuple[bytes, bytes, bytes]:
    """What stands in a file before the rows, between two that `render_rows` made, and after them."""
    if format_name == "json":
        return b"[", b", ", b"]"
    return EscapedCSV().export_data(tablib.Dataset(headers=list(fields))).encode(), b"", b""


class ExportForm(forms.Form):
    format = forms.ChoiceField(
        choices=[("csv", "CSV, for spreadsheets"), ("json", "JSON, for programs")],
        widget=forms.RadioSelect,
        initial="csv",
    )
    after = forms.IntegerField(
        label="After id",
        required=False,
        min_value=0,
        max_value=MAX_ID,
        help_text=f"Up to {MAX_EXPORT_ROWS:,} rows in the order of ids. "
        "For the next file, give the last id of this one.",
    )


class ExportMixin(admin.ModelAdmin):
    """Adds a page that exports a change list, with its filters and its search, to everybody who may view it.

    Attributes:
        export_fields: the exported columns, in order. Nothing is exported that is not named here.
    """

    export_fields: Sequence[str] = ()
    change_list_template = "admin/export_change_list.html"

    def get_urls(self) -> list[URLPattern]:
        urls = [self.build_url_pattern("export", self.export_view)] if self.export_fields else []
        return [*urls, *super().get_urls()]

    def build_url_pattern(self, name: str, view: Callable[[HttpRequest], HttpResponse]) -> URLPattern:
        """Builds the URL pattern of a further page beside the change list.

        Args:
            name: the last segment of the path, and the end of the pattern's name after `<app>_<model>_`.
            view: the view of the page.
        """
        return path(
            f"{name}/",
            self.admin_site.admin_view(view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
        )

    def export_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            changelist = self.get_changelist_instance(request)
        except (*INVALID_LOOKUP_ERRORS, IncorrectLookupParameters):
            return HttpResponseRedirect(request.path)
        form = ExportForm(request.POST or None)
        if form.is_valid() and "saved" in request.POST:
            return self._save(request, changelist, form.cleaned_data["format"])
        if form.is_valid():
            return self._export(request, changelist.queryset, form.cleaned_data["format"], form.cleaned_data["after"])
        changelist_url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Export {self.opts.verbose_name_plural}",
            "form": form,
            "cl": changelist,
            "back": f"{changelist_url}?{request.GET.urlencode()}",
            "columns": self.export_fields,
            "may_be_saved": changelist.paginator.has_more or changelist.result_count > MAX_EXPORT_ROWS,
        }
        return TemplateResponse(request, "admin/export.html", context)

    def _export(
        self, request: HttpRequest, queryset: QuerySet[Model], format_name: str, after: int | None
    ) -> HttpResponse:
        after = after or 0
        dataset = build_dataset(self.export_fields, self.get_export_rows(queryset, after)[:MAX_EXPORT_ROWS])
        name = f"{self.opts.verbose_name_plural}".replace(" ", "-")
        audit.record("rows.exported", user=request.user, what=name, rows=len(dataset), after=after)
        file_format = FORMATS[format_name]()
        return HttpResponse(
            file_format.export_data(dataset),
            content_type=f"{file_format.get_content_type()}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}.{format_name}"'},
        )

    def get_export_rows(self, queryset: QuerySet[Model], after: int) -> QuerySet[Model]:
        """The rows of a list with ids above one, in the order of ids, with what is exported of them."""
        return queryset.filter(pk__gt=after).order_by("pk").only(*self.export_fields)

    def _save(self, request: HttpRequest, changelist: Any, format_name: str) -> HttpResponse:
        """Asks for an export in the background; of each user one at a time is made."""
        user: Any = request.user
        export = SavedExport.objects.filter(user=user, finished_at=None).first()
        if export is None:
            export = SavedExport.objects.create(
                user=user,
                what=self.opts.label_lower,
                query=request.GET.urlencode(),
                format=format_name,
                total=None if changelist.paginator.has_more else changelist.result_count,
            )
        else:
            self.message_user(request, "This one of yours is still being made: ask again after it.", messages.WARNING)
        return HttpResponseRedirect(reverse("admin:config_savedexport_change", args=[export.pk]))
