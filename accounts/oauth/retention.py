"""Which rows of the toolkit's tables can never be used again."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from accounts.models import living_refresh_tokens


def past_codes(now: datetime) -> QuerySet[Any]:
    return get_grant_model().objects.filter(expires__lte=now)


def past_refresh_tokens(now: datetime) -> QuerySet[Any]:
    """Those of families that are over.

    A used token stays as long as its family lives: presented again, it ends the family. The toolkit's `cleartokens`
    removes it after 14 days, and from then on takes a stolen token for one that never was.
    """
    living = living_refresh_tokens(now)
    # A token without a family is asked for itself: a comparison with NULL finds nobody.
    family, itself = living.filter(token_family=OuterRef("token_family")), living.filter(pk=OuterRef("pk"))
    return get_refresh_token_model().objects.filter(~Exists(family), ~Exists(itself))


def past_access_tokens(now: datetime) -> QuerySet[Any]:
    """Those past their end, except where a living refresh token counts its own end from theirs."""
    living = living_refresh_tokens(now).filter(access_token=OuterRef("pk"))
    return get_access_token_model().objects.filter(~Exists(living), expires__lte=now)
