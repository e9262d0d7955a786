"""The limits on guessing: every door that takes a password or a client secret counts its failures here, together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from config import audit
from config.api.limits import counters
from config.api.settings import settings
from config.fastpath import batching
from config.http.client_address import client_address, network_of


@contextmanager
def guess(request: Any, account: str, *, user: Any = None, **facts: Any) -> Iterator[list[bool]]:
    """Wraps the check of a secret: `with guess(request, email) as right: right.append(check(...))`.

    The block appends what its look at the secret told; without a look nothing is counted.

    Nothing is looked at once the limit is used up. A wrong try is counted before it is answered, so that of many at
    once no more than the limit are told that they were wrong. A right one is not counted at all: counting it and
    taking it back would refuse a client with many simultaneous requests and the right password. Each process of the
    service looks at one secret at a time, so at most that many tries are under way beyond the limit.

    Call it outside of a transaction: the count must outlive the refusal.

    Args:
        request: the request that brings the secret, for its address.
        account: whose secret it is meant to be: an email, or a client id; of an account that there is, the stored one,
            and else what was sent.
        user: whom the account belongs to, for the audit audit.
        facts: what else the audit trail should know, such as the door.

    Raises:
        DomainError: RATE_LIMITED, instead of any look at the secret or instead of the answer that it was wrong.
    """
    limits = _limits(network_of(client_address(request)), account)

    def refuse(wait: float | None) -> None:
        if wait is not None:
            audit.record("login.refused", user=user, **facts)
            raise counters.rate_limited(wait)

    # Others would read the same count as this one, and be looked at beyond the limit.
    with batching.undisturbed():
        refuse(counters.exceeded(counters.read([*limits]), limits, more=1))
        right: list[bool] = []
        try:
            yield right
        finally:
            if False in right:
                audit.record("login.failed", user=user, **facts)
                refuse(counters.exceeded(counters.count([*limits]), limits))


def _limits(network: str, account: str) -> Mapping[str, int]:
    # Short, whatever was sent.
    name = hashlib.sha256(account.casefold().encode("utf-8", "replace")).hexdigest()[:32]
    return {
        f"guess:{name}:{network}": settings.RATE_LIMIT_LOGIN_ACCOUNT,
        f"guess:*:{network}": settings.RATE_LIMIT_LOGIN_ADDRESS,
        f"guess:{name}:*": settings.RATE_LIMIT_LOGIN_ACCOUNT * 10,
    }
