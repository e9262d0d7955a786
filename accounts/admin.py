from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.models import APIKey, LoginSession
from config.admin import ReadOnlyAdmin


@admin.register(APIKey)
class APIKeyAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "name", "prefix", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("prefix", "=user__id")
    exclude = ("digest",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[APIKey]:
        """An administrator sees everybody's, support its own: as in the API."""
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.filter(user_id=request.user.pk)


@admin.register(LoginSession)
class LoginSessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "created_at", "rotated_at", "expires_at", "ended_at")
    search_fields = ("=user__id",)
    exclude = ("password_digest", "refresh_digest", "previous_digest", "access_id")
