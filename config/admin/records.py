"""The admin pages of the tables that the API itself writes: audit events, uses of versions, stored answers, outbox."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.utils.html import format_html_join

from config import audit
from config.admin.base import ReadOnlyAdmin, link_to_key
from config.admin.changelist import ChoiceListFilter
from config.models import AuditEvent, IdempotencyRecord, OutboxEntry, VersionUse

# For a fact with many values, such as the users that one request added.
MAX_LIST = 10


class VersionFilter(ChoiceListFilter):
    title = parameter_name = "version"
    options = [(str(version.number), f"version {version}") for version in settings.API_VERSIONS]


class EventFilter(ChoiceListFilter):
    title = parameter_name = "event"
    options = [(event, event) for event in audit.EVENTS]


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "event", "user_link", "facts_text", "address", "request_id")
    list_filter = (EventFilter, "at")
    sortable_by = ("id", "at")
    search_fields = ("event", "user", "request_id")
    search_help_text = "An exact event name, a user ID, or the Request-Id of a response."

    @admin.display(description="facts")
    def facts_text(self, obj: AuditEvent) -> str:
        return format_html_join(", ", "{}: {}", ((name, _render(name, fact)) for name, fact in obj.facts.items()))


def _render(name: str, fact: object) -> str:
    if name == "by":
        # The id of the user who did it.
        return link_to_key(get_user_model(), fact)
    if isinstance(fact, list):
        return " ".join(map(str, fact[:MAX_LIST])) + (f" … ({len(fact):,})" if len(fact) > MAX_LIST else "")
    return str(fact)


@admin.register(VersionUse)
class VersionUseAdmin(ReadOnlyAdmin):
    list_display = ("day", "version", "user_link", "kind", "credential", "count")
    list_filter = ("day", VersionFilter)
    sortable_by = ("day",)
    ordering = ("-day",)
    search_fields = ("user",)
    search_help_text = "A user ID."


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at", "kind", "user_link", "status", "attempts", "due_at", "error")
    list_filter = ("status",)
    search_fields = ("user",)
    search_help_text = "The id of a user"
    exclude = ("parameters",)


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at", "user_link", "operation", "key", "location")
    list_filter = ("created_at",)
    search_fields = ("key", "user")
    search_help_text = "An idempotency key, exactly as sent, or a user ID."
    exclude = ("fingerprint",)
