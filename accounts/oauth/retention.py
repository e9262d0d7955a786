"""Rows of the toolkit's tables that can never be used again."""

from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractRefreshToken,
    get_access_token_model,
    get_refresh_token_model,
)

from accounts.models import living_refresh_tokens


def past_refresh_tokens(now: datetime) -> QuerySet[AbstractRefreshToken]:
    """The tokens of families in which none is valid.

    A used token stays as long as its family lives: its reuse ends the family. The toolkit's `cleartokens` deletes it
    after 14 days, and from then on takes a stolen token for an unknown one.
    """
    living = living_refresh_tokens(now)
    # A token without a family is compared by its own key: a comparison with NULL matches no row.
    family, itself = living.filter(token_family=OuterRef("token_family")), living.filter(pk=OuterRef("pk"))
    return get_refresh_token_model().objects.filter(~Exists(family), ~Exists(itself))


def past_access_tokens(now: datetime) -> QuerySet[AbstractAccessToken]:
    """The expired tokens, except those from whose expiry a valid refresh token derives its own."""
    living = living_refresh_tokens(now).filter(access_token=OuterRef("pk"))
    return get_access_token_model().objects.filter(~Exists(living), expires__lte=now)
