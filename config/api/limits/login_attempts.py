"""The limits on log-in attempts: every door that takes a password or a client secret counts its failures together."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings
from django.db.models import Model

from config import audit
from config.api.limits import counters
from config.api.limits.quotas import consume_quota
from config.api.requests import AnyRequest
from config.http.client_address import client_address, get_network


@contextmanager
def login_attempt(
    request: AnyRequest, account: str, *, user: Model | None = None, **facts: object
) -> Iterator[list[bool]]:
    """Wraps the check of a secret: `with login_attempt(request, email) as results: results.append(check(...))`.

    The block appends the result of its check; without a check nothing is counted.

    Nothing is checked once the limit is used up. A failure is counted before it is answered, so of many simultaneous
    attempts no more than the limit learn that they failed. A success is not counted at all: counting it and taking it
    back would refuse a client that sends many simultaneous requests with the right password. So simultaneous attempts
    can exceed the limit, by no more than the caller may have under way. Those that fail learn only that there were too
    many; one with the right secret succeeds.

    Call it outside of a transaction: the count must outlive the refusal.

    Args:
        request: the request that brings the secret, for its address.
        account: whose secret it is meant to be: an email as UserQuerySet.fold_emails has it, or a client id.
        user: the owner of the account, for the audit.
        facts: what else the audit trail should know, such as the door.

    Raises:
        DomainError: RATE_LIMITED, instead of any look at the secret or instead of the answer that it was wrong.
    """
    limits = _get_limits(get_network(client_address(request)), account)

    def refuse(wait: float | None) -> None:
        if wait is not None:
            # First: a request that the quota refuses writes nothing.
            consume_quota(request, None)
            audit.record("login.refused", user=user, **facts)
            raise counters.rate_limited(wait)

    refuse(counters.get_wait(counters.fetch([*limits]), limits, more=1))
    results: list[bool] = []
    try:
        yield results
    finally:
        if False in results:
            audit.record("login.failed", user=user, **facts)
            refuse(counters.get_wait(counters.increment([*limits]), limits))


def count_message(request: AnyRequest, account: str) -> None:
    """Counts a requested message, against limits of their own as high as those on failed attempts.

    Args:
        request: for its address.
        account: whom the message is for, whether or not there is such an account: an email as of `login_attempt`.

    Raises:
        DomainError: RATE_LIMITED.
    """
    limits = _get_limits(get_network(client_address(request)), account, "message")
    if (wait := counters.get_wait(counters.increment([*limits]), limits)) is not None:
        raise counters.rate_limited(wait)


def _get_limits(network: str, account: str, counted: str = "guess") -> Mapping[str, int]:
    # Short, whatever was sent.
    name = hashlib.sha256(account.encode("utf-8", "replace")).hexdigest()[:32]
    return {
        f"{counted}:{name}:{network}": settings.RATE_LIMIT_LOGIN_ACCOUNT,
        f"{counted}:*:{network}": settings.RATE_LIMIT_LOGIN_ADDRESS,
        f"{counted}:{name}:*": settings.RATE_LIMIT_LOGIN_ACCOUNT * 10,
    }
