from django.contrib import admin

from accounts.models import APIKey
from config.admin import BooksAdmin


@admin.register(APIKey)
class APIKeyAdmin(BooksAdmin):
    list_display = ("id", "user_id", "name", "prefix", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("prefix", "=user__id")
    exclude = ("digest",)
