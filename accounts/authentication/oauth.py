"""An OAuth 2.0 access token, of a user or of an application that acts for its owner."""

from typing import Any

from django.utils import timezone
from oauth2_provider.models import get_access_token_model
from rest_framework.request import Request

from accounts.models import digest_of
from config.api.errors import invalid_token
from config.api.principal import Principal


def resolve(token: str, request: Request) -> Principal:
    row = usable_token(token)
    if row is None:
        raise invalid_token()
    return Principal(acting_user(row), scopes_of(row), "oauth", row.expires, row.application.client_id)


def usable_token(token: str) -> Any:
    """The access token as it is kept, with its user and application, in one query; None when it allows nothing."""
    found = get_access_token_model().objects.select_related("user", "application__owner")
    row = found.filter(token_checksum=digest_of(token), expires__gt=timezone.now()).first()
    user = row and acting_user(row)
    return row if user is not None and user.is_active else None


def acting_user(token: Any) -> Any:
    """The user who granted the token; a client-credentials token has none, and acts for its application's owner."""
    return token.user or token.application.owner


def scopes_of(token: Any) -> frozenset[str]:
    """What was granted, as far as the application is allowed it now."""
    return frozenset(token.scope.split()) & frozenset(token.application.allowed_scopes)
