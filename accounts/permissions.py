from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from accounts.models import APIKey
from config.api.permissions import ResourcePermission
from config.api.principal import Principal
from config.http.errors import forbidden

if TYPE_CHECKING:
    # Whose module imports this one, by the settings.
    from rest_framework.views import APIView

_NEEDS_PASSWORD = "To manage keys or read those of others, use a password-based credential: JWT, Basic or session."


class APIKeyPermission(ResourcePermission):
    """Any credential can read its user's own keys; everything else needs one that is based on the password."""

    @staticmethod
    def may_change(principal: Principal, row: APIKey) -> bool:
        return principal.made_from_password

    def has_permission(self, request: Request, view: APIView) -> bool:
        allowed = super().has_permission(request, view)
        if request.method not in {*SAFE_METHODS} and not request.auth.made_from_password:
            raise forbidden(_NEEDS_PASSWORD, "credential")
        return allowed

    def has_object_permission(self, request: Request, view: APIView, obj: APIKey) -> bool:
        if obj.user_id != request.auth.user.pk and not request.auth.made_from_password:
            raise forbidden(_NEEDS_PASSWORD, "credential")
        return True
