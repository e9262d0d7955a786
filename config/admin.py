"""What the admin pages of several apps share."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from config.api.errors import DomainError
from config.models import AuditEvent


class BooksAdmin(admin.ModelAdmin):
    """Rows to look at: the books do not change."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ServiceAdmin(admin.ModelAdmin):
    """An admin whose writes go through services: what they refuse is told on the page, and nothing is written."""

    show_full_result_count = False

    def _told(self, view: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().changeform_view, request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().delete_view, request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._told(super().changelist_view, request, *args, **kwargs)


@admin.register(AuditEvent)
class AuditEventAdmin(BooksAdmin):
    list_display = ("id", "at", "event", "user_id", "address", "request_id", "facts")
    search_fields = ("event__startswith", "=user__id", "=request_id")
