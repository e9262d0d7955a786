from django.contrib import admin
from django.db.models import Count

from config.admin import dashboard
from config.admin.base import ReadOnlyAdmin
from orders.models import Order


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "item", "qty", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "item", "qty", "created_at")
    search_fields = ("id", "user", "item__startswith")
    search_help_text = "An order ID, a user ID, or the start of an item name."
    export_fields = ("id", "user_id", "item", "qty", "created_at")


dashboard.register_chart("Orders", "New orders per day.", Order.objects.all(), "created_at", orders=Count("pk"))
