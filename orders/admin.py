from django.contrib import admin

from config.admin.base import ReadOnlyAdmin
from orders.models import Order


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "item", "qty", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "item", "qty", "created_at")
    search_fields = ("id", "user", "item__startswith")
    search_help_text = "The id of an order or of a user, or the beginning of an item"
    linked_filters = ("user__id",)
    ordering = ("-id",)
    export_fields = ("id", "user_id", "item", "qty", "created_at")
