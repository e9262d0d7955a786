"""The header of every page: the entry points of the service, and who is signed in."""

from typing import Any

from django.conf import settings
from django.contrib.auth.middleware import get_user
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from config.api.browsable.middleware import find_session_user

_NEWEST = f"/api/v{settings.API_VERSIONS[-1]}"
# Beside the admin, which is for some alone.
DOORS = {"Guide": "/docs/first-request", "Reference": "/docs", "Browse": _NEWEST}
API_KEYS = f"{_NEWEST}/api-keys"


def get_account(request: HttpRequest) -> AbstractBaseUser | None:
    """The user of the session; None without the database."""
    return find_session_user(request, get_user)


def add_shell(request: Any) -> dict[str, object]:
    """A context processor. DRF's request is another one around Django's, and has its own user."""
    plain: HttpRequest = getattr(request, "_request", request)
    return {"account": SimpleLazyObject(lambda: get_account(plain)), "doors": DOORS.items(), "api_keys": API_KEYS}
