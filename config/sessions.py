"""Sessions in the database, whose keys are looked at before they are looked up."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    def _validate_session_key(self, key: Any) -> bool:
        """Django's keys are letters and digits; a cookie can also hold a NUL, which PostgreSQL refuses to compare."""
        valid: bool = super()._validate_session_key(key)  # type: ignore[misc]  # the stubs leave it out
        return valid and key.isascii() and key.isalnum()
