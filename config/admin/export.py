"""Exports of change lists, streamed as the API's lists are: CSV for spreadsheets, JSON by lines for programs."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from config import audit
from config.admin.changelist import INVALID_LOOKUP_ERRORS
from config.api import streams
from config.api.representation.renderers import CSVRenderer, NDJSONRenderer, StreamRenderer
from config.http.errors import DomainError


class SpreadsheetRenderer(CSVRenderer):
    """CSV after a byte order mark: Excel takes a file without one for the code page of its machine."""

    def render_beginning(self, names: Sequence[str]) -> bytes:
        return codecs.BOM_UTF8 + super().render_beginning(names)


FORMATS: dict[str, StreamRenderer] = {"csv": SpreadsheetRenderer(), "ndjson": NDJSONRenderer()}


def get_value(row: Model, name: str) -> str | int | None:
    """A value as files carry it: times as in the API, amounts with all their digits."""
    match getattr(row, name):
        case datetime() as time:
            return time.isoformat().replace("+00:00", "Z")
        case list() as several:
            return " ".join(several)
        case None | int() as value:
            return value
        case value:
            return str(value)


class ExportForm(forms.Form):
    format = forms.ChoiceField(
        choices=[("csv", "CSV, for spreadsheets"), ("ndjson", "JSON lines, for programs")],
        widget=forms.RadioSelect,
        initial="csv",
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

    def build_url_pattern(self, name: str, view: Callable[[HttpRequest], HttpResponseBase]) -> URLPattern:
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

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            changelist = self.get_changelist_instance(request)
        except (*INVALID_LOOKUP_ERRORS, IncorrectLookupParameters):
            return HttpResponseRedirect(request.path)
        form = ExportForm(request.POST or None)
        if form.is_valid():
            return self._export(request, changelist, form.cleaned_data["format"])
        changelist_url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Export {self.opts.verbose_name_plural}",
            "form": form,
            "cl": changelist,
            "back": f"{changelist_url}?{request.GET.urlencode()}",
            "columns": self.export_fields,
        }
        return TemplateResponse(request, "admin/export.html", context)

    def _export(self, request: HttpRequest, changelist: Any, format_name: str) -> HttpResponseBase:
        name = f"{self.opts.verbose_name_plural}".replace(" ", "-")
        rows = None if changelist.paginator.has_more else changelist.result_count
        # Before the snapshot, which only reads.
        audit.record("rows.exported", user=request.user, what=name, rows=rows)
        pieces = self._read(request, changelist.queryset, format_name)
        headers = {
            "Content-Type": FORMATS[format_name].content_type,
            "Content-Disposition": f'attachment; filename="{name}.{format_name}"',
            "Cache-Control": "no-store",
        }
        try:
            return streams.respond(request, pieces, headers)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def _read(self, request: HttpRequest, queryset: QuerySet[Model], format_name: str) -> Generator[bytes]:
        renderer = FORMATS[format_name]
        alias, user = queryset.db, cast(Any, request.user)
        with streams.open_snapshot(user.pk, alias):
            yield renderer.render_beginning(self.export_fields)
            for rows in streams.read_rows(queryset.using(alias).order_by("pk").only(*self.export_fields)):
                yield renderer.render_rows(
                    [{name: get_value(row, name) for name in self.export_fields} for row in rows]
                )
