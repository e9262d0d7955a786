"""What every credential resolves to: a user and a set of scopes. Nothing else is known to the rest of the code."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

SCOPES = (
    "users:read",
    "users:write",
    "orders:read",
    "orders:write",
    "posts:read",
    "posts:write",
    "payments:read",
    "payments:write",
)
ALL_SCOPES = frozenset(SCOPES)

# The kinds that are made from the password, and so may do what the password's owner alone should do.
PASSWORD_KINDS = frozenset({"jwt", "basic", "session"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, with what.

    Attributes:
        user: the acting user (an instance of settings.AUTH_USER_MODEL).
        scopes: what the credential allows; the user's role limits it further.
        kind: `api_key`, `jwt`, `oauth`, `basic` or `session`.
        expires_at: when the credential ends, None when it does not by itself.
    """

    user: Any
    scopes: frozenset[str]
    kind: str
    expires_at: datetime | None = None

    @property
    def made_from_password(self) -> bool:
        return self.kind in PASSWORD_KINDS
