"""The landing page: what the service is, the first request, where to go next, and the state of the service."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest

from config.site.shell import get_account


def build_context(request: HttpRequest) -> dict[str, object]:
    """The context of config/landing.html.

    Args:
        request: the request of the page.

    Returns:
        The context.
    """
    account = get_account(request)
    return {
        "account": account,
        "section": "",
        "address": "",
        "origin": settings.PUBLIC_URL,
        "newest": settings.API_VERSIONS[-1],
        "api_versions": settings.API_VERSIONS,
        **_read_state(account),
    }


def _read_state(account: Any) -> Mapping[str, object]:
    """Whether the database answers, and the reader's newest API key that can be used."""
    try:
        if account:
            return {"is_ready": True, "api_key": account.api_keys.usable().order_by("-id").first()}
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return {"is_ready": False}
    return {"is_ready": True}
