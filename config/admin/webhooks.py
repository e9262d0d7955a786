"""The admin pages of webhooks and their deliveries. Secrets are shown nowhere."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from config.admin.base import ReadOnlyAdmin, link_to_key
from config.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "url", "types", "status", "disabled_reason", "failing_since")
    search_fields = ("user",)
    search_help_text = "A user ID."
    linked_filters = ("user__id",)
    list_select_related = ("user",)
    exclude = ("secret", "previous_secret")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at", "webhook_link", "type", "event_id", "status", "due_at")
    ordering = ("-id",)
    linked_filters = ("webhook__id",)
    linked_ordering = "-id"
    actions = ("retry",)

    @admin.display(description="webhook")
    def webhook_link(self, obj: WebhookDelivery) -> str:
        return link_to_key(Webhook, obj.webhook_id)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @admin.action(description="Send again", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> HttpResponse | None:
        consequences = ["The endpoints get these events once more. Disabled ones get them when they are active again."]
        if page := self.confirm_action(request, queryset, "retry", "Send deliveries again", consequences):
            return page
        deliveries = queryset.select_for_update(of=("self",), no_key=True).order_by("id")
        for delivery in deliveries:
            delivery.retry()
            self.log_change(request, delivery, "Sent again.")
        self.message_user(request, f"{len(deliveries)} deliveries are sent again.", messages.SUCCESS)
        return None
