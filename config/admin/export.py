"""Exports of change lists, streamed as the API's lists are: CSV for spreadsheets, JSON by lines for programs."""

import codecs
from collections.abc import Callable, Generator, Sequence
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

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


class ExportMixin(admin.ModelAdmin):
    """Lets everybody who may view a change list export it, with its filters and its search.

    Attributes:
        export_fields: the exported columns, in order. Nothing is exported that is not named here.
    """

    export_fields: Sequence[str] = ()
    change_list_template = "admin/export_change_list.html"

    def get_urls(self) -> list[URLPattern]:
        urls = [self.build_url_pattern("export", require_POST(self.export_view))] if self.export_fields else []
        return [*urls, *super().get_urls()]

    def build_url_pattern(self, name: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
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
        file_format = request.POST.get("format", "")
        if file_format not in FORMATS:
            raise Http404
        problem = "That filter or selection is not valid."
        try:
            # A savepoint: PostgreSQL may refuse the value of a filter, and the message is to be written after that.
            with transaction.atomic():
                changelist = self.get_changelist_instance(request)
            return self._export(request, changelist, file_format)
        except (*INVALID_LOOKUP_ERRORS, IncorrectLookupParameters):
            query = ""
        except DomainError as error:
            problem, query = error.message, f"?{request.GET.urlencode()}"
        self.message_user(request, problem, messages.ERROR)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist") + query)

    def _export(self, request: HttpRequest, changelist: Any, file_format: str) -> HttpResponseBase:
        name = f"{self.opts.verbose_name_plural}".replace(" ", "-")
        rows = None if changelist.paginator.has_more else changelist.result_count
        # Before the snapshot, which only reads.
        audit.record("rows.exported", user=request.user, what=name, rows=rows)
        headers = {
            "Content-Type": FORMATS[file_format].content_type,
            "Content-Disposition": f'attachment; filename="{name}.{file_format}"',
            "Cache-Control": "no-store",
        }
        return streams.respond(request, self._read(request, changelist.queryset, FORMATS[file_format]), headers)

    def _read(self, request: HttpRequest, queryset: QuerySet[Model], renderer: StreamRenderer) -> Generator[bytes]:
        alias = queryset.db
        with streams.open_snapshot(cast(Any, request.user).pk, alias):
            yield renderer.render_beginning(self.export_fields)
            for rows in streams.read_rows(queryset.using(alias).order_by("pk").values(*self.export_fields)):
                yield renderer.render_rows(rows)
