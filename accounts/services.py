"""Making, rotating and revoking API keys."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from accounts.models import PREFIX_CHARACTERS, APIKey
from config.api.errors import DomainError, ErrorCode
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


def rotate_api_key(old: APIKey, overlap: timedelta) -> tuple[APIKey, str]:
    """Makes a successor of a key whose row is locked, and lets the old one go on for `overlap` at the most.

    Raises:
        DomainError: CONFLICT when the old key is revoked, expired or rotated already.
    """
    now = timezone.now()
    if old.revoked_at or old.rotated_at or (old.expires_at and old.expires_at <= now):
        raise DomainError(ErrorCode.CONFLICT, "A revoked, expired or already rotated key has no successor.")
    made = create_api_key(old.user, name=old.name, scopes=old.scopes, expires_at=old.expires_at)
    old.rotated_at = now
    old.expires_at = min(filter(None, (old.expires_at, now + overlap)))
    old.save(update_fields=["rotated_at", "expires_at"])
    return made


def revoke_api_key(key: APIKey) -> None:
    """Ends a key at once. Ending it again changes nothing, not even the time."""
    APIKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
