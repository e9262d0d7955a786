"""`X-API-Key: <key>` or `?api_key=<key>`."""

from django.db.models import F
from rest_framework.request import Request

from accounts.models import APIKey, APIKeyQuerySet
from config import audit
from config.api.limits.quotas import CredentialLookup, consume_quota
from config.api.principal import Principal
from config.http.errors import DomainError, ErrorCode

_keys = CredentialLookup(
    lambda digest: (
        # A removed user's key is found, too: `resolve` asks for an active user, and this runs for each request.
        APIKeyQuerySet(APIKey)
        .usable()
        .select_related("user")
        .only("user", "prefix", "scopes", "expires_at", "last_used_at")
        .filter(digest=digest)
        .annotate(principal_id=F("user_id"))
    )
)


def resolve(key: str, request: Request) -> Principal:
    """The principal of an API key, whose use is noted.

    Args:
        key: as it was sent.
        request: that sent it, and is counted against the quota of the key's user.

    Raises:
        DomainError: INVALID_CREDENTIALS for a key that is unknown, expired or revoked, or whose user is inactive.
    """
    row = _keys.find(request, digest=APIKey.get_digest(key))
    if row is None or not row.user.is_active:
        # First: a request that the quota refuses writes nothing.
        consume_quota(request, None)
        audit.record("api_key.refused", user=row and row.user)
        raise DomainError(ErrorCode.INVALID_CREDENTIALS, "The API key is invalid, revoked or expired.")
    row.note_use()
    return Principal(row.user, frozenset(row.scopes), "api_key", row.expires_at, row.prefix)
