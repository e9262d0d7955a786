"""What the admin pages of several apps share."""

from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import FieldError, ValidationError
from django.db import DataError, models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from config.api import transactions
from config.api.errors import DomainError
from config.models import AuditEvent, IdempotencyRecord, VersionUse

LONGEST_LINE = 254
# The search looks for every word by itself: thousands of them would take the database minutes.
LONGEST_SEARCH = 100
# Of the rows chosen for an action: as many as a page of the list has.
LISTED = 100


class LinesField(forms.CharField):
    """Several lines. A browser sends each of their ends as CR LF, whatever it was given."""

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class ServiceAdmin(admin.ModelAdmin):
    """An admin that keeps the rules of the API: what they refuse is told on the page, and nothing is written."""

    show_full_result_count = False
    # What links of other pages filter by.
    linked_filters: Sequence[str] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Filters are those of the page; Django would take any column and any comparison from the address."""
        return lookup.removesuffix("__exact") in {*self.list_filter, *self.linked_filters}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return super().get_search_results(request, queryset, search_term[:LONGEST_SEARCH].replace("\0", ""))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if isinstance(db_field, models.CharField) and (db_field.max_length or 0) > LONGEST_LINE:
            options |= {"form_class": LinesField, "widget": forms.Textarea}
        field = super().formfield_for_dbfield(db_field, request, **options)
        if isinstance(field, forms.CharField):
            # Text is kept as it is sent, here too.
            field.strip = False
        return field

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Names what was chosen. What goes with it may be thousands of rows, and nothing that stays is in its way."""
        return [str(row) for row in objs], {str(self.opts.verbose_name_plural): len(objs)}, set(), []

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().changeform_view, request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().delete_view, request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return self._told(super().changelist_view, request, *args, **kwargs)
        except (DataError, FieldError, ValidationError, ValueError):
            # A filter or a selection that no link of the page has made.
            self.message_user(request, "That filter or selection makes no sense.", messages.ERROR)
            return HttpResponseRedirect(request.path)

    def confirmation(
        self, request: HttpRequest, rows: QuerySet[Any], action: str, title: str, consequences: Sequence[str]
    ) -> HttpResponse | None:
        """The page on which an action on chosen rows is confirmed. None when it has been."""
        if "post" in request.POST:
            return None
        count = rows.count()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "consequences": consequences,
            "rows": rows[:LISTED],
            "more": max(0, count - LISTED),
            "action": action,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
        }
        return TemplateResponse(request, "admin/confirmation.html", context)

    def _told(self, view: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            # Whole: an action that is refused half way must not leave the half, nor the log of it. Its locks may meet
            # those of a request, in another order: who falls victim to a deadlock runs again.
            return transactions.run(lambda: view(request, *args, **kwargs))
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())


class ReadOnlyAdmin(ServiceAdmin):
    """Rows to look at: they are not the admin's to change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "event", "user_id", "address", "request_id", "facts")
    search_fields = ("event__startswith", "=user__id", "=request_id")
    linked_filters = ("user__id",)


@admin.register(VersionUse)
class VersionUseAdmin(ReadOnlyAdmin):
    list_display = ("day", "version", "user_id", "kind", "credential", "count")
    list_filter = ("version", "kind")
    search_fields = ("=user__id", "=credential")
    linked_filters = ("user__id",)


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at", "user_id", "operation", "key", "location", "replays", "replayed_at")
    # Not `=key`, which compares without regard to case and would read the whole table.
    search_fields = ("key__exact",)
    exclude = ("fingerprint",)
