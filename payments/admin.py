from collections.abc import Iterator, Sequence
from datetime import date

from django.contrib import admin
from django.db.models import Count, Sum

from config.admin import dashboard
from config.admin.base import ReadOnlyAdmin
from config.admin.dashboard import Chart
from payments.models import Payment


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "amount", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "amount", "created_at")
    search_fields = ("id", "user")
    search_help_text = "A payment ID or a user ID."
    linked_filters = ("user__id",)
    ordering = ("-id",)
    export_fields = ("id", "user_id", "amount", "created_at")


@dashboard.register_charts
def build_payment_charts(days: Sequence[date]) -> Iterator[Chart]:
    aggregates = {"payments": Count("pk"), "amount": Sum("amount")}
    values = dashboard.aggregate_by_day(Payment.objects.all(), "created_at", days, **aggregates)
    numbers = dashboard.to_integers({"payments": values["payments"]})
    yield Chart("Payments", "New payments per day.", days, numbers)
    yield Chart("Amount paid", "Total amount of all payments per day.", days, {"amount": values["amount"]})
