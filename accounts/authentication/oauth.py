"""An OAuth 2.0 access token, of a user or of an application that acts for its owner."""

from typing import Any

from django.db.models.functions import Coalesce, Now
from oauth2_provider.models import get_access_token_model
from rest_framework.request import Request

from accounts.models import get_digest
from config.api.limits.quotas import CredentialLookup
from config.api.principal import Principal
from config.http.errors import invalid_token

_tokens = CredentialLookup(
    lambda checksum: (
        get_access_token_model()
        .objects.select_related("user", "application__owner")
        .filter(token_checksum=checksum, expires__gt=Now())
        .annotate(principal_id=Coalesce("user_id", "application__owner_id"))
    )
)


def resolve(token: str, request: Request) -> Principal:
    row = usable_token(token, request)
    if row is None:
        raise invalid_token()
    return Principal(acting_user(row), get_scopes(row), "oauth", row.expires, row.application.client_id)


def usable_token(token: str, request: Any = None) -> Any:
    """The access token as it is kept, with its user and application, in one query; None when it allows nothing.

    The query counts the request whose credential it is, if it is one's.
    """
    row = _tokens.find(request, checksum=get_digest(token))
    user = row and acting_user(row)
    return row if user is not None and user.is_active else None


def acting_user(token: Any) -> Any:
    """The user who granted the token; a client-credentials token has none, and acts for its application's owner."""
    return token.user or token.application.owner


def get_scopes(token: Any) -> frozenset[str]:
    """What was granted, as far as the application is allowed it now."""
    return frozenset(token.scope.split()) & frozenset(token.application.allowed_scopes)
