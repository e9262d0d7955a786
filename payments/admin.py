from django.contrib import admin

from config.admin import ReadOnlyAdmin
from payments.models import Payment


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "amount", "created_at")
    search_fields = ("=id", "=user__id")
