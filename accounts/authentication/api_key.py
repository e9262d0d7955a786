"""`X-API-Key: <key>` or `?api_key=<key>`."""

from django.db.models import F
from rest_framework.request import Request

from accounts.authentication.headers import parts
from accounts.models import APIKey
from config import audit
from config.api.limits.quotas import CredentialLookup
from config.api.principal import Principal
from config.http.errors import DomainError, ErrorCode
from config.http.middleware import secret_parameters

_keys = CredentialLookup(
    lambda digest: (
        APIKey.objects.usable()
        .select_related("user")
        .only("user", "prefix", "scopes", "expires_at", "last_used_at")
        .filter(digest=digest)
        .annotate(principal_id=F("user_id"))
    )
)


def presented(request: Request) -> list[str]:
    return [*parts(request.META.get("HTTP_X_API_KEY")), *secret_parameters(request)]


def resolve(key: str, request: Request) -> Principal:
    row = _keys.find(request, digest=APIKey.get_digest(key))
    if row is None or not row.user.is_active:
        audit.record("api_key.refused", user=row and row.user)
        raise DomainError(ErrorCode.INVALID_CREDENTIALS, "The API key is not valid, or not any more.")
    row.touch()
    return Principal(row.user, frozenset(row.scopes), "api_key", row.expires_at, row.prefix)
