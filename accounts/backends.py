from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from accounts import passwords
from config import audit
from config.http.errors import DomainError, ErrorCode
from users.models import User


class PasswordBackend(ModelBackend):
    """Django's own logins, the admin's for one, under the limits on guessing that hold for every door."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **options: Any
    ) -> User | None:
        """Raises DomainError, a RATE_LIMITED, where too many passwords were wrong."""
        if request is None or username is None or password is None:
            return None
        try:
            return passwords.prove(request, username, password, door="session")
        except DomainError as error:
            if error.code is not ErrorCode.INVALID_CREDENTIALS:
                raise
            return None


@receiver(user_logged_in)
def note_login(sender: Any, user: User, **options: Any) -> None:
    audit.record("login", user=user, door="session")


@receiver(user_logged_out)
def note_logout(sender: Any, user: User | None, **options: Any) -> None:
    if user is not None:
        audit.record("logout", user=user, door="session")
