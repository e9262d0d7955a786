"""Making credentials, and ending them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from accounts.models import PREFIX_CHARACTERS, APIKey, Application
from config import audit
from config.api import transactions
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


def save_new_application(application: Application) -> str | None:
    """Registers an application whose fields have been checked.

    Returns its secret, which is told this once and kept nowhere; None for a public client.
    """
    secret = application.give_secret()
    application.save()
    audit.record("oauth_application.created", user=application.owner, client_id=application.client_id)
    return secret


def remove_application(application: Application) -> None:
    """Removes an application with all codes and tokens that it holds, in the caller's transaction."""
    # The lock keeps out tokens that are being given meanwhile, for which the application is held.
    Application.objects.select_for_update().get(pk=application.pk)
    audit.record("oauth_application.removed", user=application.owner, client_id=application.client_id)
    application.delete()


def end_grant(user: Any, application: Application) -> None:
    """Ends what a user has granted to an application: its codes and all its tokens."""

    def write() -> None:
        # In this order, each statement with a fresh look: whoever is just exchanging a code or a refresh token holds
        # its row, so the next statement is made to wait and then sees the new tokens. A refresh token that came about
        # in between is left without its access token, and is worth nothing then.
        own = {"user": user, "application": application}
        get_grant_model().objects.filter(**own).delete()
        get_refresh_token_model().objects.filter(**own, revoked=None).update(revoked=timezone.now())
        get_access_token_model().objects.filter(**own).delete()
        audit.record("oauth_grant.ended", user=user, client_id=application.client_id)

    transactions.run(write)
