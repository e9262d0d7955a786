"""Making credentials, and ending them."""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from accounts.models import PREFIX_CHARACTERS, APIKey, Application, hash_secret
from config import audit
from config.api.principal import ALL_SCOPES, AUDIT_SCOPE, SCOPES
from config.http.errors import DomainError, ErrorCode, not_found
from users.models import User


def create_api_key(
    user: User, *, name: str, scopes: Iterable[str] | None = None, expires_at: datetime | None = None
) -> tuple[APIKey, str]:
    """Makes a key for `user`, with all scopes but AUDIT_SCOPE when none are named, in the caller's transaction.

    Returns the row and the key itself, which is told this once and stored nowhere.
    """
    chosen = (ALL_SCOPES - {AUDIT_SCOPE}) if scopes is None else frozenset(scopes)
    row, key = _new_key(user, name, [scope for scope in SCOPES if scope in chosen], expires_at)
    audit.record("api_key.created", user=user, key=row.prefix)
    return row, key


def _new_key(user: User, name: str, scopes: list[str], expires_at: datetime | None) -> tuple[APIKey, str]:
    key = f"urs_{secrets.token_urlsafe(32)}"
    row = APIKey.objects.create(
        user=user,
        name=name,
        prefix=key[:PREFIX_CHARACTERS],
        digest=hash_secret(key),
        scopes=scopes,
        expires_at=expires_at,
    )
    return row, key


def rotate_api_key(old: APIKey, overlap: timedelta) -> tuple[APIKey, str]:
    """Makes a successor of a key whose user and row are locked. The old key works for `overlap` at most.

    Raises:
        DomainError: CONFLICT when the old key is revoked, expired or rotated already.
    """
    now = timezone.now()
    if old.revoked_at or old.rotated_at or (old.expires_at and old.expires_at <= now):
        raise DomainError(ErrorCode.CONFLICT, "You cannot rotate a key that is revoked, expired or already rotated.")
    row, key = _new_key(old.user, old.name, old.scopes, old.expires_at)
    old.rotated_at = now
    old.expires_at = min(filter(None, (old.expires_at, now + overlap)))
    old.save(update_fields=["rotated_at", "expires_at"])
    audit.record("api_key.rotated", user=old.user, key=row.prefix)
    return row, key


def revoke_api_key(key: APIKey, *, by: User) -> None:
    """Ends a key, whose user is held, at once. Ending it again changes nothing, not even the time."""
    if APIKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record("api_key.revoked", user=key.user, by=by, key=key.prefix)


def save_new_application(application: Application) -> str | None:
    """Registers an application whose fields have been checked.

    Returns its secret, which is shown only now and stored nowhere; None for a public client.
    """
    secret = application.give_secret()
    application.save()
    audit.record("oauth_application.created", user=application.owner, client_id=application.client_id)
    return secret


def change_application(application: Application, columns: list[str]) -> None:
    """Writes new values of those columns, which have been checked, and of no other: the row may have a new secret.

    Raises:
        DomainError: NOT_FOUND when the application has been removed.
    """
    row = Application.objects.filter(pk=application.pk)
    # It concerns the owner before and after.
    owners = [*User.objects.filter(pk__in={*row.values_list("owner", flat=True), application.owner_id}).order_by("id")]
    for owner in owners:
        User.objects.lock_key_share(owner.pk)
    for owner in owners or [None]:
        facts = {"client_id": application.client_id, "changed": columns}
        audit.record("oauth_application.changed", user=owner, **facts)
    values = {name: getattr(application, name) for name in columns}
    if not row.update(**values, updated=timezone.now()):
        raise not_found()


def rotate_secret(application: Application) -> str | None:
    """Gives an application a new secret, and ends the present one at once; the tokens it got stay.

    Returns the secret, which is shown only now and stored nowhere; None for a public client.
    """
    # The owner before the application, as everywhere; the event's foreign key would lock it after, at the commit.
    User.objects.lock_key_share(application.owner_id or 0)
    audit.record("oauth_application.secret_rotated", user=application.owner, client_id=application.client_id)
    secret = application.give_secret()
    Application.objects.filter(pk=application.pk).update(client_secret=application.client_secret)
    return secret


def remove_application(application: Application) -> None:
    """Removes an application with all codes and tokens that it holds, in the caller's transaction."""
    User.objects.lock_key_share(application.owner_id or 0)
    audit.record("oauth_application.removed", user=application.owner, client_id=application.client_id)
    # The lock keeps out tokens that are being given meanwhile, for which the application is held.
    Application.objects.select_for_update().get(pk=application.pk)
    application.delete()


def end_grant(user: Any, application: Application, *, by: Any) -> None:
    """Ends what a user has granted to an application, its codes and all its tokens, in the caller's transaction."""
    audit.record("oauth_grant.ended", user=user, by=by, client_id=application.client_id)
    _end_tokens(user=user, application=application)


def end_credentials(user: User) -> None:
    """Ends every credential of a user but the password, in the caller's transaction.

    Nothing that is being given meanwhile is left: sessions and logins know of the user as it was, and who makes a key
    or a token holds the row that is locked here (UserManager.lock_key_share_with_credentials).

    Of applications that act for the user the secret ends, too, which could get the next token. Applications that only
    belong to the user continue to work: they act for others.

    Webhooks are disabled, because whoever had a credential could have made one.

    Raises:
        DomainError: NOT_FOUND when the user has been removed.
    """
    present = User.objects.select_for_update().filter(pk=user.pk).first()
    if present is None:
        raise not_found()
    now = timezone.now()
    present.credentials_ended_at = now
    present.save(update_fields=["credentials_ended_at"])
    machines = present.oauth_applications.filter(authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS)
    for application in machines.order_by("id"):
        rotate_secret(application)
    audit.record(
        "credentials.ended",
        user=present,
        api_keys=present.api_keys.filter(revoked_at=None).update(revoked_at=now),
        logins=present.login_sessions.filter(ended_at=None, expires_at__gt=now).update(ended_at=now),
        oauth_tokens=_end_tokens(user=present) + _end_tokens(application__in=machines),
        webhooks=present.webhooks.disable(
            "All credentials were revoked. Check the URL and rotate the secret, then set the status to active."
        ),
    )


def _end_tokens(**own: Any) -> int:
    """Ends codes and tokens. Returns how many access and refresh tokens there were."""
    # In this order, each statement with a new snapshot: a concurrent exchange of a code or a refresh token holds its
    # row, so the next statement waits and then sees the new tokens. A refresh token that was issued in between is left
    # without its access token, and is worthless.
    get_grant_model().objects.filter(**own).delete()
    refresh = get_refresh_token_model().objects.filter(**own, revoked=None).update(revoked=timezone.now())
    access, _ = get_access_token_model().objects.filter(**own).delete()
    return refresh + access
