from typing import Any

from django.conf import settings
from rest_framework.request import Request

from config.api.permissions import ResourcePermission
from config.api.principal import Principal
from users.models import User


def may_read_owner(principal: Principal, row: Any) -> bool:
    """Whether the caller may read the user that a row belongs to: the row may have outlived it."""
    if principal.user.id == row.user_id:
        return True
    return bool(principal.user.is_staff) and row.user.removed_at is None


def is_self_or_administrator(principal: Principal, user_id: int) -> bool:
    return principal.user.is_administrator or principal.user.id == user_id


class UserPermission(ResourcePermission):
    @staticmethod
    def may_create(principal: Principal) -> bool:
        return bool(principal.user.is_administrator)

    @staticmethod
    def may_change(principal: Principal, row: User) -> bool:
        return is_self_or_administrator(principal, row.id)

    def allows_anonymous(self, request: Request) -> bool:
        return request.method == "POST" and settings.OPEN_SIGNUP
