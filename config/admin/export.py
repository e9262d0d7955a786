"""The rows of a list as a file: CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import tablib
from django import forms
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from import_export.fields import Field
from import_export.formats.base_formats import CSV, JSON
from import_export.resources import Resource
from import_export.widgets import Widget

from config import audit
from config.admin.changelist import NONSENSE
from config.api.representation.serializers import GREATEST_ID

# A file is made whole, in the one thread of a worker: this many rows take a second.
MOST_ROWS = 20_000


class Cell(Widget):
    """A value as files tell it: times as in the API, amounts with all their digits."""

    def render(self, value: Any, obj: Any = None, **options: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        if isinstance(value, list):
            return " ".join(value)
        return value if value is None or isinstance(value, int) else str(value)


def defused(cell: Any) -> str:
    """A cell that no spreadsheet takes for a formula, whatever somebody chose for a name (CWE-1236)."""
    text = "" if cell is None else str(cell)
    # Some take the full-width forms of those signs, too.
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if first.startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\r", "\n")) else text


class Spreadsheet(CSV):
    def export_data(self, dataset: tablib.Dataset, **options: Any) -> Any:
        cells = tablib.Dataset(*(tuple(map(defused, row)) for row in dataset), headers=dataset.headers)
        return super().export_data(cells, **options)


FORMATS = {"csv": Spreadsheet, "json": JSON}


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
        max_value=GREATEST_ID,
        help_text=f"Up to {MOST_ROWS:,} rows in the order of ids. For the next file, give the last id of this one.",
    )


class Exported(admin.ModelAdmin):
    """Lists that can be taken away, as they are filtered and searched, by all who may see them.

    Attributes:
        exported: the columns, in their order. What is not named leaves in no file.
    """

    exported: Sequence[str] = ()
    change_list_template = "admin/export_change_list.html"

    def get_urls(self) -> list[URLPattern]:
        own = [self._path("export", self.export_view)] if self.exported else []
        return [*own, *super().get_urls()]

    def _path(self, name: str, view: Callable[..., HttpResponse]) -> URLPattern:
        address = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        return path(f"{name}/", self.admin_site.admin_view(view), name=address)

    def export_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            shown = self.get_changelist_instance(request)
        except (*NONSENSE, IncorrectLookupParameters):
            return HttpResponseRedirect(request.path)
        form = ExportForm(request.POST or None)
        if form.is_valid():
            return self._file(request, shown.queryset, form.cleaned_data["format"], form.cleaned_data["after"] or 0)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Export {self.opts.verbose_name_plural}",
            "form": form,
            "cl": shown,
            "back": f"{reverse(f'admin:{self.opts.app_label}_{self.opts.model_name}_changelist')}?"
            f"{request.GET.urlencode()}",
            "columns": self.exported,
        }
        return TemplateResponse(request, "admin/export.html", context)

    def _file(self, request: HttpRequest, rows: QuerySet[Any], chosen: str, after: int) -> HttpResponse:
        fields = {name: Field(attribute=name, column_name=name, widget=Cell()) for name in self.exported}
        resource: Any = type("Exported", (Resource,), fields)()
        first = rows.filter(pk__gt=after).order_by("pk").only(*self.exported)[:MOST_ROWS]
        dataset = resource.export(first)
        name = f"{self.opts.verbose_name_plural}".replace(" ", "-")
        audit.record("rows.exported", user=request.user, what=name, rows=len(dataset), after=after)
        file_format = FORMATS[chosen]()
        return HttpResponse(
            file_format.export_data(dataset),
            content_type=f"{file_format.get_content_type()}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}.{chosen}"'},
        )
