"""Which rows of the toolkit's tables can never be used again."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from oauth2_provider.models import (
    get_access_token_model,
    get_grant_model,
    get_refresh_token_model,
    refresh_token_expire_timedelta,
)


def past_codes(now: datetime) -> QuerySet[Any]:
    return get_grant_model().objects.filter(expires__lte=now)


def past_refresh_tokens(now: datetime) -> QuerySet[Any]:
    """Those of families that are over.

    A used token stays as long as its family lives: presented again, it ends the family. The toolkit's `cleartokens`
    removes it after 14 days, and from then on takes a stolen token for one that never was.
    """
    tokens = get_refresh_token_model().objects
    family = tokens.filter(_living(now), token_family=OuterRef("token_family"))
    # Without a family only itself is asked: a comparison with NULL finds nobody.
    return tokens.filter(~Exists(family)).exclude(_living(now) & Q(token_family=None))


def past_access_tokens(now: datetime) -> QuerySet[Any]:
    """Those past their end, except where a living refresh token counts its own end from theirs."""
    living = get_refresh_token_model().objects.filter(_living(now), access_token=OuterRef("pk"))
    return get_access_token_model().objects.filter(~Exists(living), expires__lte=now)


def _living(now: datetime) -> Q:
    return Q(revoked=None, access_token__expires__gt=now - refresh_token_expire_timedelta())
