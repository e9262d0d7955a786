"""The ModelAdmin classes that the admin pages of all apps derive from."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import model_format_dict, unquote
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from config.admin import changelist
from config.admin.export import ExportMixin
from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError, ErrorCode
from config.postgresql import row_counts, transactions
from config.postgresql.visibility import IsVisible

# A longer text gets a textarea.
MAX_INPUT_LENGTH = 255
# Those of Django but for what fills prepopulated fields, which no form has: two thirds of the bytes.
_SCRIPTS = ("jquery.init.js", "core.js", "admin/RelatedObjectLookups.js", "actions.js")
# The field of a change form with the version of the row that it shows.
VERSION = "_version"
# An action locks, writes and logs each row, in one transaction.
MAX_ACTION_ROWS = 1_000


def get_principal(request: HttpRequest) -> Principal:
    """Returns the user who is signed in to the admin as the API's rules take a caller: a session with all scopes."""
    return Principal(request.user, ALL_SCOPES, "session")


def get_version(row: Any) -> str:
    """The version of what a change form shows. A row's ETag is another: a comment is no conflict of its post."""
    return str((getattr(row, "updated_at", None) or row.updated).isoformat())


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


def confirmed_action(description: str, *consequences: str, permission: str = "administrator") -> Callable[[Any], Any]:
    """Makes an admin action of a method, which runs once the page that says what it does is confirmed.

    Args:
        description: the name of the action.
        consequences: sentences that say what it does; without any, those of a removal.
        permission: what it requires (`has_<permission>_permission`).
    """

    def decorate(run: Any) -> Any:
        @admin.action(description=description, permissions=[permission])
        @wraps(run)
        def action(page: Any, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
            if "post" in request.POST:
                answer: HttpResponse | None = run(page, request, queryset)
                return answer
            context = {
                **page.admin_site.each_context(request),
                "opts": page.opts,
                "title": description % model_format_dict(page.opts),
                "consequences": consequences or page.removal_consequences,
                "rows": queryset,
                "action": request.POST["action"],
                "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
                "select_across": request.POST.get("select_across", "0"),
            }
            return TemplateResponse(request, "admin/confirmation.html", context)

        return action

    return decorate


class TextareaField(forms.CharField):
    """A text of several lines. Browsers submit each line break as CR LF, also where the page had LF."""

    def to_python(self, value: object) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class ServiceAdmin(ExportMixin, admin.ModelAdmin):
    """A ModelAdmin that obeys the rules of the API: it reports what they refuse as a message, and writes nothing.

    Attributes:
        search_fields: `column` or `column__startswith`, each with an index (config.admin.changelist).
        sortable_by: columns that an index begins with.
        removal_consequences: sentences about what a removal does.
        user_field: the foreign key to a user, whose own page shows the latest of these rows and links to the list of
            all; empty if there is none.
    """

    show_full_result_count = False
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable_by: ClassVar[tuple[str, ...]] = ("id",)
    list_select_related: ClassVar[Any] = ("user",)
    user_field = "user"
    removal_consequences: Sequence[str] = ("This cannot be undone.",)

    @property
    def media(self) -> forms.Media:
        jquery = f"vendor/jquery/jquery{'' if settings.DEBUG else '.min'}.js"
        return forms.Media(js=[f"admin/js/{name}" for name in (jquery, *_SCRIPTS)])

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[changelist.ChangeList]:
        """Returns Django's hook, or the class that `config.admin.related` reads with."""
        return getattr(request, "changelist_class", changelist.ChangeList)

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Model], per_page: int, *args: Any, **kwargs: Any
    ) -> Paginator:
        if queryset.model is LogEntry:
            # For a row's history, which links to the users who wrote it.
            queryset = queryset.filter(IsVisible(LogEntry))
        counts = row_counts.get_counts(queryset.model)
        parameters = {column: request.GET.get(f"{column}__exact") for column in (counts.columns if counts else ())}
        filters = {column: value for column, value in parameters.items() if value}
        if counts and counts.filter(queryset, {column: [value] for column, value in filters.items()}):
            return changelist.CountedPaginator(queryset, filters, per_page)
        return changelist.BoundedPaginator(queryset, per_page)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allows the filters of the page alone; Django would allow any lookup on any column of the table."""
        column, _, comparison = lookup.rpartition("__")
        names: set[Any] = {f"{self.user_field}__id"}
        for each in self.list_filter:
            names.add(each[0] if isinstance(each, tuple) else getattr(each, "parameter_name", each))
        return lookup in names or (column in names and comparison in {"exact", "gte", "lt", "isempty"})

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

    def has_view_related_permission(self, request: HttpRequest, row: Model) -> bool:
        """Whether the signed-in user may view all rows here that refer to `row`, a row of another model."""
        return self.has_view_permission(request)

    @admin.display(description="user")
    def user_link(self, obj: Any) -> str:
        return link_to_user(getattr(obj, self.user_field))

    def has_administrator_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

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
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        show_or_save = super().changeform_view

        def view() -> HttpResponse:
            self._lock(request, object_id)
            return show_or_save(request, object_id, *args, **kwargs)

        return self._run_in_transaction(request, view)

    def _lock(self, request: HttpRequest, object_id: str | None) -> None:
        """Locks the row that a submitted form is about, and refuses to overwrite what the form did not show.

        Raises:
            DomainError: CONFLICT if somebody else changed the row after the page was opened.
        """
        if object_id is None or request.method != "POST" or not self.has_change_permission(request):
            return
        try:
            key = self.opts.pk.to_python(unquote(object_id))
        except ValidationError:
            # Django responds that the row does not exist.
            return
        row = self.get_queryset(request).select_for_update(no_key=True, of=("self",)).filter(pk=key).first()
        # A form without a version is no page's: like a request without If-Match, it asks for no comparison.
        if row and request.POST.get(VERSION, get_version(row)) != get_version(row):
            message = f"This {self.opts.verbose_name} was changed after you opened this page. Nothing was saved."
            raise DomainError(ErrorCode.CONFLICT, f"{message} Check the present values, and enter your changes again.")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (row := kwargs.get("obj")) and self.has_change_permission(request):
            context["version"] = get_version(row)
        return super().render_change_form(request, context, *args, **kwargs)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        context = {"consequences": self.removal_consequences, **(extra_context or {})}
        return self._run_in_transaction(request, partial(super().delete_view, request, object_id, context))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        try:
            return self._run_in_transaction(request, partial(super().changelist_view, request, extra_context))
        except changelist.INVALID_LOOKUP_ERRORS:
            self.message_user(request, "That filter or selection is not valid.", messages.ERROR)
            return HttpResponseRedirect(request.path)

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
