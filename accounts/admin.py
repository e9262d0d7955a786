from django.contrib import admin

from accounts.models import APIKey, LoginSession
from config.admin import BooksAdmin


@admin.register(APIKey)
class APIKeyAdmin(BooksAdmin):
    list_display = ("id", "user_id", "name", "prefix", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("prefix", "=user__id")
    exclude = ("digest",)


@admin.register(LoginSession)
class LoginSessionAdmin(BooksAdmin):
    list_display = ("id", "user_id", "created_at", "rotated_at", "expires_at", "ended_at")
    search_fields = ("=user__id",)
    exclude = ("password_digest", "refresh_digest", "previous_digest", "access_id")
