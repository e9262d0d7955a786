"""The admin pages of webhooks and their deliveries. Secrets are shown nowhere."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from config.admin.base import ReadOnlyAdmin, confirmed_action, link_to_key
from config.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "url", "types", "status", "disabled_reason", "failing_since")
    search_fields = ("user",)
    search_help_text = "A user ID."
    exclude = ("secret", "previous_secret")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at", "webhook_link", "type", "event_id", "status", "due_at")
    list_select_related = False
    user_field = ""
    actions = ("retry",)

    @admin.display(description="webhook")
    def webhook_link(self, obj: WebhookDelivery) -> str:
        return link_to_key(Webhook, obj.webhook_id)

    @confirmed_action(
        "Send again", "The endpoints get these events once more. Disabled ones get them when they are active again."
    )
    def retry(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        deliveries = queryset.select_for_update(of=("self",), no_key=True).order_by("id")
        for delivery in deliveries:
            delivery.retry()
            self.log_change(request, delivery, "Sent again.")
        self.message_user(request, f"{len(deliveries)} deliveries are sent again.", messages.SUCCESS)
