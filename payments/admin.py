from django.contrib import admin
from django.db.models import Count, Sum

from config.admin import dashboard
from config.admin.base import ReadOnlyAdmin
from payments.models import Payment


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "amount", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "amount", "created_at")
    search_fields = ("id", "user")
    search_help_text = "A payment ID or a user ID."
    export_fields = ("id", "user_id", "amount", "created_at")


dashboard.register_chart("Payments", "New payments per day.", Payment.objects.all(), "created_at", payments=Count("pk"))
dashboard.register_chart(
    "Amount paid", "Total amount of all payments per day.", Payment.objects.all(), "created_at", amount=Sum("amount")
)
