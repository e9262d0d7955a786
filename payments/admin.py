from django.contrib import admin

from config.admin import ReadOnlyAdmin
from payments.models import Payment


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "amount", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "amount", "created_at")
    search_fields = ("id", "user")
    search_help_text = "The id of a payment or of a user"
    linked_filters = ("user__id",)
    ordering = ("-id",)
    exported = ("id", "user_id", "amount", "created_at")
