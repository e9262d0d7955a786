"""What the admin pages of several apps share."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from config.admin import changelist
from config.admin.export import Exported
from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError, ErrorCode
from config.postgresql import row_counts, transactions

LONGEST_LINE = 254
# Of the rows chosen for an action.
LISTED = 100
# By one action: each row is locked, written and noted, in one transaction.
MOST_CHOSEN = 1_000


def principal_of(request: HttpRequest) -> Principal:
    """Who is signed in to the admin, as the rules of the API know a caller."""
    return Principal(request.user, ALL_SCOPES, "session")


class LinesField(forms.CharField):
    """Several lines. A browser sends each of their ends as CR LF, whatever it was given."""

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class ServiceAdmin(Exported):
    """An admin that keeps the rules of the API: what they refuse is told on the page, and nothing is written.

    Its lists are those of config.admin.changelist: `search_fields` are columns or `column__startswith`, `sortable_by`
    the columns that an index begins with.
    """

    show_full_result_count = False
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[tuple[str, ...]] = ("id",)
    # What links of other pages filter by.
    linked_filters: Sequence[str] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[changelist.List]:
        return changelist.List

    def get_paginator(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,
    ) -> Paginator:
        counts = row_counts.of(self.model)
        columns = counts.columns if counts else ()
        asked = {column: request.GET.get(f"{column}__exact") for column in columns}
        filters = {name: value for name, value in asked.items() if value}
        return changelist.paginator(queryset, filters, per_page, searched=bool(request.GET.get(SEARCH_VAR)))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Filters are those of the page; Django would take any column and any comparison from the address."""
        dates = changelist.get_date_fields(self.model, self.list_filter)
        since = {f"{column}__{side}" for column in dates for side in ("gte", "lt")}
        chosen = {getattr(each, "parameter_name", each) for each in self.list_filter}
        return lookup.removesuffix("__exact") in {*chosen, *self.linked_filters} or lookup in since

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term[: changelist.LONGEST_SEARCH].replace("\0", "").strip()
        return (changelist.any_of(queryset, self.found(queryset, term)) if term else queryset), False

    def found(self, rows: QuerySet[Any], term: str) -> list[QuerySet[Any]]:
        """The ways in which rows match what is searched for."""
        return changelist.found(rows, [str(field) for field in self.search_fields], term)

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

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Writes what was changed and nothing else: the rest of the row is as old as the form."""
        if form.changed_data:
            obj.save(update_fields=form.changed_data)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """By way of the queryset, as a bulk does: there, models take their locks in order."""
        self.delete_queryset(request, self.model._default_manager.filter(pk=obj.pk))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is written in somebody else's name."""
        return False

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *args: Any) -> HttpResponse | None:
        # Django takes anything else for true.
        everything = request.POST.get("select_across", "0") not in {"", "0"}
        if everything and queryset.order_by()[: MOST_CHOSEN + 1].count() > MOST_CHOSEN:
            raise DomainError(ErrorCode.CONFLICT, f"These are more than {MOST_CHOSEN:,} rows: choose fewer of them.")
        return super().response_action(request, queryset, *args)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().changeform_view, request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().delete_view, request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return self._told(super().changelist_view, request, *args, **kwargs)
        except changelist.NONSENSE:
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

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
