from django.contrib import admin

from config.admin import ReadOnlyAdmin
from orders.models import Order


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "item", "qty", "created_at")
    search_fields = ("=id", "=user__id")
