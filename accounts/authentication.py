"""An OAuth 2.0 access token, of a user or of an application that acts for its owner."""

from django.db.models.functions import Coalesce, Now
from oauth2_provider.models import AbstractAccessToken, get_access_token_model
from rest_framework.request import Request

from accounts.models import get_digest
from config.api.limits.quotas import CredentialLookup
from config.api.principal import Principal
from config.api.requests import AnyRequest
from config.http.errors import invalid_token
from users.models import User

_tokens = CredentialLookup(
    lambda checksum: (
        get_access_token_model()
        .objects.select_related("user", "application__owner")
        .filter(token_checksum=checksum, expires__gt=Now())
        .annotate(principal_id=Coalesce("user_id", "application__owner_id"))
    )
)


def resolve(token: str, request: Request) -> Principal:
    """The principal of an OAuth access token, with the scopes that were granted and are still allowed.

    Args:
        token: as it was sent.
        request: that sent it, and is counted against the quota of the token's user.

    Raises:
        DomainError: INVALID_TOKEN for a token that is unknown, expired or revoked, or whose user is inactive.
    """
    row = usable_token(token, request)
    if row is None:
        raise invalid_token()
    return Principal(acting_user(row), get_scopes(row), "oauth", row.expires, row.application.client_id)


def usable_token(token: str, request: AnyRequest | None = None) -> AbstractAccessToken | None:
    """The access token as it is stored, with its user and application, in one query; None when it allows nothing.

    The query counts the request whose credential it is, if it is one's.
    """
    row = _tokens.find(request, checksum=get_digest(token))
    user = row and acting_user(row)
    if user is None or not user.is_active:
        return None
    owner = row.application.owner
    # An application goes with its owner, and the tokens that it has of others go with it.
    return row if owner is None or owner.removed_at is None else None


def acting_user(token: AbstractAccessToken) -> User:
    """The user who granted the token; a client-credentials token has none, and acts for its application's owner."""
    return token.user or token.application.owner


def get_scopes(token: AbstractAccessToken) -> frozenset[str]:
    """The granted scopes that the application is still allowed."""
    return frozenset(token.scope.split()) & frozenset(token.application.allowed_scopes)
