"""Sessions in the database, whose keys are looked at before they are looked up."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

if TYPE_CHECKING:
    from django.contrib.sessions.base_session import AbstractBaseSession
    from django.db.models import QuerySet


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: Any) -> bool:
        """Django's keys are letters and digits; a cookie can also hold a NUL, which PostgreSQL refuses to compare."""
        valid: bool = super()._validate_session_key(key)  # type: ignore[misc]  # the stubs leave it out
        return valid and key.isascii() and key.isalnum()


def past(now: datetime) -> QuerySet[AbstractBaseSession]:
    """Sessions that no cookie opens any more."""
    return SessionStore.get_model_class().objects.filter(expire_date__lte=now)
