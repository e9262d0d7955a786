"""What every credential resolves to: a user and a set of scopes. Nothing else is known to the rest of the code."""

from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user_model

from config.http.errors import DomainError, ErrorCode

_EVENT_SCOPE_TEXTS = {
    "events:read": "Read the events of the users and resources that you can read",
    "webhooks:read": "Read your webhooks",
    "webhooks:write": "Manage webhooks that send your events to other services",
}
# Every scope there is, with the words in which a user is asked for it.
SCOPE_TEXTS = {
    "users:read": "Read your profile and the other users that you can see",
    "users:write": "Change your profile and the other users that you can change",
    "orders:read": "Read your orders and the others that you can see",
    "orders:write": "Place orders",
    "posts:read": "Read posts and comments",
    "posts:write": "Write, edit and delete your posts and comments, and the others that you can change",
    "payments:read": "Read your payments and the others that you can see",
    "payments:write": "Make payments",
    **(_EVENT_SCOPE_TEXTS if settings.EVENTS else {}),
    "audit:read": "Read the audit trail, as an administrator",
}
SCOPES = tuple(SCOPE_TEXTS)
ALL_SCOPES = frozenset(SCOPES)
# Given by administrators alone, and where it is named.
AUDIT_SCOPE = "audit:read"

# The kinds that are made from the password, and so may do what the password's owner alone should do.
PASSWORD_KINDS = frozenset({"jwt", "basic", "session"})


def lock_credentials(user: Any) -> None:
    """Keeps a user's credentials from being ended until the transaction ends. Before any other lock.

    Raises:
        DomainError: UNAUTHENTICATED when they were ended since the request was authenticated.
    """
    if not get_user_model()._default_manager.lock_key_share_with_credentials(user):
        raise DomainError(ErrorCode.UNAUTHENTICATED, "Your credentials have just been revoked. Sign in again.")


class Principal(NamedTuple):
    """Who is calling, with what.

    Attributes:
        user: the acting user (an instance of settings.AUTH_USER_MODEL).
        scopes: what the credential allows; the user's role limits it further.
        kind: `api_key`, `jwt`, `oauth`, `basic` or `session`.
        expires_at: when the credential expires; None if it does not.
        credential: which one of its kind, where it has a name: the prefix of an API key, a client id. Never a secret.
    """

    user: Any
    scopes: frozenset[str]
    kind: str
    expires_at: datetime | None = None
    credential: str = ""

    def lock_key_share(self) -> None:
        """Keeps the user from being removed until the transaction ends.

        Raises:
            DomainError: UNAUTHENTICATED when it was removed since the request was authenticated.
        """
        if not get_user_model()._default_manager.lock_key_share(self.user.pk):
            raise DomainError(ErrorCode.UNAUTHENTICATED, "The user of this credential has just been deleted.")

    @property
    def made_from_password(self) -> bool:
        return self.kind in PASSWORD_KINDS
