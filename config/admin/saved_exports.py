"""Exports of more rows than one answer should carry: made in the background, fetched as one file.

What is left to do is in the database, as with erasures (config.erasure): a part is added in a transaction of its own,
together with the id that it ends at. A process that is killed loses the part that it was at, and another one goes on.

Whoever fetches an export is asked again what the list shows: a row that is gone since, or no longer may be seen, is not
in the file.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Model, QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from config import audit
from config.admin.base import ReadOnlyAdmin
from config.admin.changelist import INVALID_LOOKUP_ERRORS
from config.admin.export import render_frame, render_rows
from config.models import SavedExport, SavedExportPart
from config.postgresql.transactions import is_unavailable

# A part takes a tenth of a second: so soon is the thread free for what else it does.
PART_ROWS = 2_000
# Erasures, which have the same thread, wait no longer.
SECONDS_OF_A_TURN = 1.0
SECONDS_BETWEEN_REFRESHES = 2
# A process that was killed is not missed before.
CLAIM = timedelta(seconds=5)


class _RefusedError(Exception):
    """An export that cannot be made, or not for this user any more."""


# --- In the background


def work(*, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Adds parts to an export for about SECONDS_OF_A_TURN, unless another process is at one.

    Args:
        is_stopped: asked after each part, whether to leave the rest to others.
    """
    export = _take()
    if export is None:
        return
    try:
        page, request = _open(export)
        rows = _get_rows(page, request)
        began = time.monotonic()
        while _add_part(export, page, rows) and not is_stopped() and time.monotonic() - began < SECONDS_OF_A_TURN:
            pass
    except _RefusedError as refusal:
        _finish(export, str(refusal))
    except Exception as error:
        if not is_unavailable(error):
            _finish(export, "It failed. Ask for it again, or for fewer rows.")
        raise
    SavedExport.objects.filter(pk=export.pk).update(claimed_until=Now())


def _take() -> SavedExport | None:
    waiting = SavedExport.objects.filter(finished_at=None)
    # A look that writes nothing, also on a database that only reads.
    if not waiting.exists():
        return None
    with transaction.atomic(durable=True):
        # Exports are large, and nobody waits for them: one at a time.
        if waiting.filter(claimed_until__gt=Now()).exists():
            return None
        locked = waiting.select_related("user").select_for_update(of=("self",), skip_locked=True)
        export = locked.order_by("id").first()
        if export is not None:
            SavedExport.objects.filter(pk=export.pk).update(claimed_until=Now() + CLAIM)
    return export


def _open(export: SavedExport) -> tuple[Any, HttpRequest]:
    """The page of the exported list, and a request of the export's user for it.

    Raises:
        _RefusedError: the user may not view it, or it is no longer there.
    """
    refusal = _RefusedError("Its user may not view these rows any more.")
    try:
        page: Any = admin.site.get_model_admin(apps.get_model(export.what))
    except (LookupError, NotRegistered):
        raise refusal from None
    request = HttpRequest()
    request.method, request.GET, request.user = "GET", QueryDict(export.query), export.user
    if not admin.site.has_permission(request) or not page.has_view_permission(request):
        raise refusal
    return page, request


def _get_rows(page: Any, request: HttpRequest) -> QuerySet[Model]:
    try:
        rows: QuerySet[Model] = page.get_changelist_instance(request).queryset
    except (*INVALID_LOOKUP_ERRORS, IncorrectLookupParameters) as error:
        raise _RefusedError("Its filters make no sense any more.") from error
    return rows


def _add_part(export: SavedExport, page: Any, rows: QuerySet[Model]) -> bool:
    """Adds the next part, or finishes the export. Returns whether there may be more."""
    found = list(page.get_export_rows(rows, export.last_id)[:PART_ROWS])
    if not found:
        _finish(export)
        return False
    ids = [row.pk for row in found]
    content = _render_part(page, found, export.format)
    with transaction.atomic(durable=True):
        # None, where another process took the export over meanwhile.
        mine = SavedExport.objects.filter(pk=export.pk, last_id=export.last_id, finished_at=None)
        if not mine.update(rows=F("rows") + len(ids), last_id=ids[-1], claimed_until=Now() + CLAIM):
            return False
        SavedExportPart.objects.create(export=export, number=export.parts.count(), ids=ids, content=content)
    export.last_id = ids[-1]
    return True


def _render_part(page: Any, rows: list[Model], format_name: str) -> bytes:
    return gzip.compress(render_rows(page.export_fields, rows, format_name), mtime=0)


def _finish(export: SavedExport, failure: str = "") -> None:
    SavedExport.objects.filter(pk=export.pk, finished_at=None).update(finished_at=Now(), failure=failure)


# --- For its user


@admin.register(SavedExport)
class SavedExportAdmin(ReadOnlyAdmin):
    """One's own exports. Nobody sees those of others: they hold what their users may see."""

    list_display = ("id", "requested_at", "list_name", "format", "progress", "file")
    fields = ("list_name", "query", "format", "requested_at", "progress", "file")
    readonly_fields = ("list_name", "progress", "file")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SavedExport]:
        return super().get_queryset(request).filter(user_id=request.user.pk)

    def get_urls(self) -> list[URLPattern]:
        fetch = path(
            "<path:object_id>/file/", self.admin_site.admin_view(self.file_view), name="config_savedexport_file"
        )
        return [fetch, *super().get_urls()]

    @admin.display(description="list")
    def list_name(self, export: SavedExport) -> str:
        return export.name

    @admin.display(description="progress")
    def progress(self, export: SavedExport) -> str:
        if export.failure:
            return export.failure
        if export.finished_at:
            return f"finished: {export.rows:,} rows"
        done = f"{export.rows:,} of {export.total:,} rows" if export.total else f"{export.rows:,} rows"
        bar = ""
        if export.total:
            bar = format_html('<progress max="{}" value="{}" aria-label="Rows"></progress>', export.total, export.rows)
        return format_html("{} {}", bar, done)

    @admin.display(description="file")
    def file(self, export: SavedExport) -> str:
        if not export.finished_at or export.failure:
            return ""
        url = reverse("admin:config_savedexport_file", args=[export.pk])
        return format_html('<a href="{}">{}</a>', url, _get_file_name(export))

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().change_view(request, object_id, *args, **kwargs)
        export = self.get_object(request, unquote(object_id))
        if export and not export.finished_at:
            response["Refresh"] = str(SECONDS_BETWEEN_REFRESHES)
        return response

    def file_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        export = self.get_object(request, unquote(object_id))
        if export is None or not export.finished_at or export.failure:
            raise Http404
        try:
            page, _ = _open(export)
        except _RefusedError as error:
            raise PermissionDenied from error
        parts = list(_read_parts(export, page, request))
        name = export.name.replace(" ", "-")
        audit.record("rows.exported", user=request.user, what=name, rows=sum(count for _, count in parts), after=0)
        head, between, end = (gzip.compress(each, mtime=0) for each in render_frame(page.export_fields, export.format))
        return HttpResponse(
            # The members of a gzip file are what they hold, one after the other (RFC 1952, section 2.2).
            b"".join([head, between.join(content for content, _ in parts), end]),
            content_type="application/gzip",
            headers={"Content-Disposition": f'attachment; filename="{_get_file_name(export)}"'},
        )


def _read_parts(export: SavedExport, page: Any, request: HttpRequest) -> Iterator[tuple[bytes, int]]:
    """The parts as members of a gzip file, each with the number of its rows.

    A part of which rows are gone since is made anew, without them.
    """
    for part in export.parts.iterator(chunk_size=20):
        rows = page.get_queryset(request).filter(pk__in=part.ids)
        if rows.order_by().count() == len(part.ids):
            yield bytes(part.content), len(part.ids)
        elif left := list(page.get_export_rows(rows, 0)):
            yield _render_part(page, left, export.format), len(left)


def _get_file_name(export: SavedExport) -> str:
    return f"{export.name.replace(' ', '-')}-{export.pk}.{export.format}.gz"
