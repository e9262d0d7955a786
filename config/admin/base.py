"""The ModelAdmin classes that the admin pages of all apps derive from."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from config.admin import changelist
from config.admin.conflicts import VersionedForm
from config.admin.export import ExportMixin
from config.admin.removal import Effect, get_effects
from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError, ErrorCode
from config.postgresql import row_counts, transactions
from config.postgresql.visibility import IsVisible

# A longer text gets a textarea.
MAX_INPUT_LENGTH = 255
MAX_CONFIRMATION_ROWS = 100
# Those of Django but for what fills prepopulated fields, which no form has: two thirds of the bytes.
_SCRIPTS = ("jquery.init.js", "core.js", "admin/RelatedObjectLookups.js", "actions.js")
# An action locks, writes and logs each row, in one transaction.
MAX_ACTION_ROWS = 1_000


def get_principal(request: HttpRequest) -> Principal:
    """Returns the user who is signed in to the admin as the API's rules take a caller: a session with all scopes."""
    return Principal(request.user, ALL_SCOPES, "session")


def link_to_key(model: type[Model], key: object) -> str:
    """Links the page of a row, which is not read, under its primary key."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[key])
    return format_html('<a href="{}">{}</a>', url, key)


def link_to_user(user: Any) -> str:
    """Links a user's page under the name, with the email below; nothing for None."""
    if user is None:
        return ""
    if user.removed_at is not None:
        return str(user)
    url = reverse(f"admin:{user._meta.app_label}_{user._meta.model_name}_change", args=[user.pk])
    return format_html('<a href="{}">{}</a><br><span class="quiet">{}</span>', url, user.name, user.email)


class TextareaField(forms.CharField):
    """A text of several lines. Browsers submit each line break as CR LF, also where the page had LF."""

    def to_python(self, value: object) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class ServiceAdmin(ExportMixin, admin.ModelAdmin):
    """A ModelAdmin that obeys the rules of the API: it reports what they refuse as a message, and writes nothing.

    Attributes:
        search_fields: `column` or `column__startswith`, each with an index (config.admin.changelist).
        sortable_by: columns that an index begins with.
        removal_consequences: sentences about what a removal does, shown with the numbers of `config.admin.removal`.
        linked_filters: lookups, besides `list_filter`, that links of other pages filter the list by. Each is
            the primary key of a row that is referred to, whose own page may show the latest of these rows.
        linked_ordering: the order of rows under a linked filter, latest first, where it is not that of the whole list.
    """

    show_full_result_count = False
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[tuple[str, ...]] = ("id",)
    linked_filters: Sequence[str] = ()
    linked_ordering = ""
    removal_consequences: Sequence[str] = ("This cannot be undone.",)

    @property
    def media(self) -> forms.Media:
        jquery = f"vendor/jquery/jquery{'' if settings.DEBUG else '.min'}.js"
        return forms.Media(js=[f"admin/js/{name}" for name in (jquery, *_SCRIPTS)])

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[changelist.ChangeList]:
        return changelist.ChangeList

    def get_paginator(
        self,
        request: HttpRequest,
        queryset: QuerySet[Model],
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,
    ) -> Paginator:
        if queryset.model is LogEntry:
            # For a row's history, which links to the users who wrote it.
            queryset = queryset.filter(IsVisible(LogEntry))
        counts = row_counts.get_counts(self.model)
        columns = counts.columns if counts else ()
        parameters = {column: request.GET.get(f"{column}__exact") for column in columns}
        filters = {column: value for column, value in parameters.items() if value}
        return changelist.build_paginator(queryset, filters, per_page, is_search=bool(request.GET.get(SEARCH_VAR)))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allows the filters of the page alone; Django would allow any lookup on any column of the table."""
        dates = changelist.get_date_fields(self.model, self.list_filter)
        periods = {f"{column}__{bound}" for column in dates for bound in ("gte", "lt")}
        filters = {getattr(each, "parameter_name", each) for each in self.list_filter}
        return lookup.removesuffix("__exact") in {*filters, *self.linked_filters} or lookup in periods

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        term = search_term[: changelist.MAX_SEARCH_LENGTH].replace("\0", "").strip()
        return (changelist.filter_any(queryset, self.get_matches(queryset, term)) if term else queryset), False

    def get_matches(self, queryset: QuerySet[Model], search_term: str) -> list[QuerySet[Model]]:
        """Returns the querysets whose union is the result of a search.

        Args:
            queryset: the rows to search.
            search_term: the text to search for, not empty.
        """
        return changelist.build_matches(queryset, [str(field) for field in self.search_fields], search_term)

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **kwargs: object
    ) -> forms.Field | None:
        if isinstance(db_field, models.CharField) and (db_field.max_length or 0) > MAX_INPUT_LENGTH:
            kwargs |= {"form_class": TextareaField, "widget": forms.Textarea}
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field, forms.CharField):
            # As in the API, text is stored with its outer whitespace.
            field.strip = False
        return field

    def get_deleted_objects(
        self, objs: Sequence[Model] | QuerySet[Model], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Names the chosen rows alone: rows deleted with them may be thousands, and no protected row is an obstacle."""
        return [str(row) for row in objs], {str(self.opts.verbose_name_plural): len(objs)}, set(), []

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm, change: bool) -> None:
        """Writes the changed columns alone: the others are as old as the form, and may have changed since."""
        if form.changed_data:
            obj.save(update_fields=form.changed_data)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Deletes by way of `delete_queryset`, in which each admin takes its locks."""
        self.delete_queryset(request, self.model._default_manager.filter(pk=obj.pk))

    def get_linked_ordering(self) -> str:
        return self.linked_ordering or str(next(iter(self.ordering or self.opts.ordering or ())))

    def has_view_related_permission(self, request: HttpRequest, row: Model) -> bool:
        """Whether the signed-in user may view all rows here that refer to `row`, a row of another model."""
        return self.has_view_permission(request)

    @admin.display(description="user")
    def user_link(self, obj: Any) -> str:
        return link_to_user(obj.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuses, as an administrator writes nothing in the name of another user."""
        return False

    def response_action(self, request: HttpRequest, queryset: QuerySet[Model], *args: Any) -> HttpResponse | None:
        # Django takes any value but "0" and "" for true.
        across = request.POST.get("select_across", "0") not in {"", "0"}
        if across and queryset.order_by()[: MAX_ACTION_ROWS + 1].count() > MAX_ACTION_ROWS:
            message = f"You selected more than {MAX_ACTION_ROWS:,} rows. Select fewer and try again."
            raise DomainError(ErrorCode.CONFLICT, message)
        return super().response_action(request, queryset, *args)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        show_or_save = super().changeform_view

        def view() -> HttpResponse:
            self._lock(request, object_id)
            return show_or_save(request, object_id, form_url, extra_context)

        return self._run_in_transaction(request, view)

    def get_form(
        self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        form = super().get_form(request, obj, change=change, **kwargs)
        return (
            type(form.__name__, (VersionedForm, form), {}) if change and self.has_change_permission(request) else form
        )

    def _lock(self, request: HttpRequest, object_id: str | None) -> None:
        """Locks the row that a submitted form is about, so that it is compared with what it would overwrite."""
        if object_id is None or request.method != "POST" or not self.has_change_permission(request):
            return
        try:
            key = self.opts.pk.to_python(unquote(object_id))
        except ValidationError:
            # Django responds that the row does not exist.
            return
        self.get_queryset(request).select_for_update(no_key=True, of=("self",)).filter(pk=key).values("pk").first()

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id)) if request.method == "GET" else None
        if row and self.has_delete_permission(request, row):
            effects = get_effects(self.get_queryset(request).filter(pk=row.pk))
            extra_context = {"consequences": self.removal_consequences, "effects": effects, **(extra_context or {})}
        return self._run_in_transaction(request, partial(super().delete_view, request, object_id, extra_context))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        try:
            return self._run_in_transaction(request, partial(super().changelist_view, request, extra_context))
        except changelist.INVALID_LOOKUP_ERRORS:
            self.message_user(request, "That filter or selection is not valid.", messages.ERROR)
            return HttpResponseRedirect(request.path)

    def confirm_action(
        self,
        request: HttpRequest,
        queryset: QuerySet[Model],
        action: str,
        title: str,
        consequences: Sequence[str],
        *,
        effects: Sequence[Effect] = (),
    ) -> HttpResponse | None:
        """Asks for the confirmation of an action on chosen rows.

        Args:
            request: the request that runs the action.
            queryset: the chosen rows.
            action: the name of the action, as in `actions`.
            title: the title of the confirmation page.
            consequences: sentences that say what the action does.
            effects: what happens to the rows that refer to the chosen ones.

        Returns:
            The confirmation page, or None when `request` confirms.
        """
        if "post" in request.POST:
            return None
        count = queryset.count()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "consequences": consequences,
            "effects": effects,
            "rows": queryset[:MAX_CONFIRMATION_ROWS],
            "more": max(0, count - MAX_CONFIRMATION_ROWS),
            "action": action,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
        }
        return TemplateResponse(request, "admin/confirmation.html", context)

    def _run_in_transaction(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """Runs a view in one transaction, so that a refused action leaves neither some of its writes nor their log.

        A view may lock rows in another order than a request of the API does: the victim of a deadlock runs again.
        """
        try:
            return transactions.run_in_transaction(view)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())


class ReadOnlyAdmin(ServiceAdmin):
    """The admin of rows that administrators may view and not change."""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
