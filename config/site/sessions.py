"""Django's sessions in the database, with keys validated before the query."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

if TYPE_CHECKING:
    from django.contrib.sessions.base_session import AbstractBaseSession
    from django.db.models import QuerySet


class SessionStore(DatabaseSessionStore):
    """Django's, but a key that Django cannot have made is not looked up: PostgreSQL refuses a NUL in a value."""

    def _validate_session_key(self, key: str) -> bool:
        is_valid: bool = super()._validate_session_key(key)  # type: ignore[misc]  # not in the stubs
        return is_valid and key.isascii() and key.isalnum()


def get_expired_sessions(now: datetime) -> QuerySet[AbstractBaseSession]:
    """The sessions that have expired at a time."""
    return SessionStore.get_model_class().objects.filter(expire_date__lte=now)
