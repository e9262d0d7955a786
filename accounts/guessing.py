"""The limits on guessing: every door that takes a password or a client secret counts its failures here, together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from config.api import throttling
from config.api.addresses import client_address, network_of


@contextmanager
def guess(request: Any, account: str) -> Iterator[list[bool]]:
    """Wraps the check of a secret: `with guess(request, email) as right: right.append(check(...))`.

    The try is counted before the secret is looked at, so that of many at once no more than the limit get a look, and
    counted back when it turns out right.

    Args:
        request: the request that brings the secret, for its address.
        account: whose secret it is meant to be: an email, or a client id. Whether there is one makes no difference.

    Raises:
        DomainError: RATE_LIMITED, instead of any look at the secret.
    """
    limits = _limits(network_of(client_address(request)), account)
    wait = throttling.exceeded(throttling.count([*limits]), limits)
    if wait is not None:
        raise throttling.rate_limited(wait)
    right: list[bool] = []
    yield right
    if any(right):
        throttling.count([*limits], by=-1)


def _limits(network: str, account: str) -> dict[str, int]:
    # Folded as the database folds, but for letters that no email of ours can hold; and short, whatever was sent.
    name = hashlib.sha256(account.casefold().encode("utf-8", "replace")).hexdigest()[:32]
    return {
        f"guess:{name}:{network}": settings.RATE_LIMIT_LOGIN_ACCOUNT,
        f"guess:*:{network}": settings.RATE_LIMIT_LOGIN_ADDRESS,
        f"guess:{name}:*": settings.RATE_LIMIT_LOGIN_ACCOUNT * 10,
    }
