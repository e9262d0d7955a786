"""Making credentials."""

from collections.abc import Iterable
from datetime import datetime

from accounts.models import PREFIX_CHARACTERS, APIKey
from config.api.principal import SCOPES
from users.models import User


def create_api_key(
    user: User, *, name: str, scopes: Iterable[str] | None = None, expires_at: datetime | None = None
) -> tuple[APIKey, str]:
    """Makes a key for `user`, with all scopes when none are named.

    Returns the row and the key itself, which is told this once and kept nowhere.
    """
    chosen = frozenset(SCOPES if scopes is None else scopes)
    key = APIKey.new_key()
    row = APIKey.objects.create(
        user=user,
        name=name,
        prefix=key[:PREFIX_CHARACTERS],
        digest=APIKey.digest_of(key),
        scopes=[scope for scope in SCOPES if scope in chosen],
        expires_at=expires_at,
    )
    return row, key
