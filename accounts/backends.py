"""Django's own logins, of the admin and of the sign-in page."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from accounts import passwords
from accounts.sessions import describe_client
from config import audit
from config.http.errors import DomainError, ErrorCode
from users.models import User


class PasswordBackend(ModelBackend):
    """Django's own logins, under the same limits on login attempts as all others."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **options: object
    ) -> User | None:
        """Checks an email and its password.

        Args:
            request: the request that logs in.
            username: the email.
            password: in clear.
            options: credentials of other backends.

        Returns:
            The active user; None if email or password is wrong or missing.

        Raises:
            DomainError: RATE_LIMITED, after too many failed attempts.
        """
        if request is None or username is None or password is None:
            return None
        try:
            return passwords.prove(request, username, password, door="session")
        except DomainError as error:
            if error.code is not ErrorCode.INVALID_CREDENTIALS:
                raise
            return None


@receiver(user_logged_in)
def record_login(sender: object, request: HttpRequest, user: User, **options: object) -> None:
    """Records a login of the admin or the sign-in page in the audit trail, and in the session what its user is shown.

    Args:
        sender: the class of the user, as Django's signal has it.
        request: whose session begins.
        user: who logged in.
        options: what else the signal sends.
    """
    request.session.update({**describe_client(), "signed_in_at": timezone.now().isoformat()})
    audit.record("login", user=user, door="session")


@receiver(user_logged_out)
def record_logout(sender: object, user: User | None, **options: object) -> None:
    """Records a logout in the audit trail.

    Args:
        sender: the class of the user, as Django's signal has it.
        user: who logged out; None for a session that had no user.
        options: what else the signal sends, such as the request.
    """
    if user is not None:
        audit.record("logout", user=user, door="session")
