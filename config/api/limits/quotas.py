"""Quotas: how many requests a user, or an address that sends no good credential, may make in a minute.

And the backend that finds a credential: the fast path counts a request in the same statement.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter
from rest_framework.exceptions import APIException
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.settings import api_settings

from config.api.backends import get_backend
from config.api.exceptions import plain_response
from config.api.limits import counters
from config.api.requests import AnyRequest
from config.api.versions.versioning import is_oauth, is_versioned
from config.http.client_address import client_address, get_network
from config.http.errors import DomainError, ErrorCode
from config.http.headers import set_headers
from config.http.middleware import Middleware
from config.http.request_state import get_state
from config.postgresql.connections import close_if_lost
from config.postgresql.replicas.watch import find_stand_in
from config.postgresql.transactions import is_unavailable

logger = logging.getLogger(__name__)

# A bug, and an unavailable database.
_UNCOUNTED = frozenset({500, 503})
POLICIES = ("anonymous", "principal")
REFUSALS = Counter("quota_refusals", "Requests refused since a quota was used up.", ["policy"])
UNCOUNTED = Counter("quota_uncounted", "Requests that no quota counted, since what counts them was away.", ["policy"])
SECONDS_BETWEEN_LINES = 60
_next_line = 0.0


class CredentialLookup:
    """Looks up the credentials of one kind.

    Args:
        build_queryset: selects by what a credential is known by the one row, or none, that is good as far as the
            database can tell, with the id of its user as `principal_id`.
    """

    def __init__(self, build_queryset: Callable[..., QuerySet[Model]]) -> None:
        self.build_queryset = build_queryset

    def find(self, request: AnyRequest | None, **values: object) -> Any:
        """The row of a credential, None for one that is no good.

        Args:
            request: whose credential it is; None for no request's.
            values: by which `build_queryset` knows it.
        """
        return get_backend(settings.CREDENTIAL_BACKEND).find(self, request, **values)


class CredentialBackend:
    """The interface of CREDENTIAL_BACKEND: reads credentials."""

    def find(self, lookup: CredentialLookup, request: AnyRequest | None, **values: object) -> Any:
        """See CredentialLookup."""
        # Unique: of one row, to sort and to limit takes time alone.
        rows = lookup.build_queryset(**values).order_by()
        stand_in = find_stand_in_for(request)
        if stand_in is None:
            try:
                return next(iter(rows.using(DEFAULT_DB_ALIAS)), None)
            except Error as error:
                # It may have waited until the loss of the primary was noticed.
                stand_in = find_stand_in_for(request) if is_unavailable(error) else None
                if stand_in is None:
                    raise
        get_state(request.META).stand_in = stand_in  # type: ignore[union-attr]  # without a request, nothing stands in
        try:
            return next(iter(rows.using(stand_in)), None)
        except Error:
            # It may be away since it was last read from, and back.
            if not close_if_lost(stand_in):
                raise
            return next(iter(rows.using(stand_in)), None)


class DatabaseQuotas:
    """The interface of QUOTA_BACKEND: counts requests, in the database."""

    def count(self, request: AnyRequest, key: str, limit: int) -> counters.Usage | None:
        """Counts a request under a key; None, and no count, where the limit is 0.

        Raises:
            CountersUnavailable, django.db.Error: nothing was counted.
        """
        if not limit:
            return None
        if get_state(request.META).stand_in:
            raise counters.CountersUnavailable("There is no primary.")
        return counters.increment([key])[key]


class RedisQuotas(DatabaseQuotas):
    """Counts them in Redis."""

    def count(self, request: AnyRequest, key: str, limit: int) -> counters.Usage | None:
        # Only installations that use Redis pay for its memory.
        from config.api.limits import redis_counters

        return redis_counters.increment([key])[0] if limit else None


def find_stand_in_for(request: AnyRequest | None) -> str | None:
    may_read = settings.REPLICAS and request is not None and request.method in SAFE_METHODS
    return find_stand_in() if may_read else None


def consume_quota(request: AnyRequest, user: Model | None) -> None:
    """Counts a request, once, before anything is done for it.

    An invalid credential counts for the address that it comes from, so nobody uses up another user's quota by
    guessing. While the database or Redis cannot count, nothing is limited: requests that need neither are answered.

    Args:
        request: of Django or of DRF.
        user: whom its credential belongs to; None for no credential, and for one that is no good.

    Raises:
        DomainError: RATE_LIMITED, the quota of this minute is used up.
    """
    state = get_state(request.META)
    if user is not None:
        state.user_id = user.pk
    if not is_counted(request):
        return
    policy, limit = (
        ("anonymous", settings.RATE_LIMIT_ANONYMOUS) if user is None else ("principal", settings.RATE_LIMIT_PRINCIPAL)
    )
    state.quota_fields = {}
    key = f"quota:{get_network(client_address(request)) if user is None else user.pk}"
    try:
        usage = get_backend(settings.QUOTA_BACKEND).count(request, key, limit)
    except (Error, counters.CountersUnavailable) as error:
        _note_uncounted(policy, error)
        return
    if usage is None:
        return
    # draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4: lists of structured fields (RFC 9651).
    state.quota_fields = {
        "RateLimit-Policy": f'"{policy}";q={limit};w={counters.WINDOW_SECONDS}',
        "RateLimit": f'"{policy}";r={max(0, limit - usage.count)};t={math.ceil(usage.reset)}',
    }
    if usage.count > limit:
        REFUSALS.labels(policy).inc()
        raise counters.rate_limited(usage.reset)


def is_counted(request: AnyRequest) -> bool:
    """Whether a request counts and was not counted yet."""
    is_new = get_state(request.META).quota_fields is None
    return is_new and (is_versioned(request.path_info) or is_oauth(request.path_info))


def _note_uncounted(policy: str, error: Exception) -> None:
    """Notes a request that is not counted: by the metric, and at most once a minute by a line in the log.

    Raises:
        django.db.Error: what it met, where that is no outage.
    """
    global _next_line  # noqa: PLW0603 - of the process
    if isinstance(error, Error) and not is_unavailable(error):
        raise error
    UNCOUNTED.labels(policy).inc()
    now = time.monotonic()
    if now >= _next_line:
        _next_line = now + SECONDS_BETWEEN_LINES
        logger.warning("Requests are not counted against their quotas: %s", error)


class QuotaMiddleware(Middleware):
    """Puts the quota's fields on each response that counts, and counts the requests that no view has counted.

    Such a request has an unknown address, is redirected, or is refused before or beside its view.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_counted(request) and response.status_code not in _UNCOUNTED:
            try:
                consume_quota(request, _get_caller(request))
            except DomainError as problem:
                response = plain_response(problem, request)
            except Error as error:
                # Nobody knows whose credential it is.
                _note_uncounted("principal", error)
        set_headers(response, get_state(request.META).quota_fields or {})
        return response


def _get_caller(request: HttpRequest) -> Model | None:
    """The user whom the credential of a request belongs to, None when it has no good one.

    Raises:
        DomainError: RATE_LIMITED, it is one of too many that are no good.
        django.db.Error: the database cannot say.
    """
    if is_oauth(request.path_info):
        return None
    authenticators = [authenticator() for authenticator in api_settings.DEFAULT_AUTHENTICATION_CLASSES]
    try:
        return Request(request, authenticators=authenticators).user
    except (DomainError, APIException) as problem:
        if isinstance(problem, DomainError) and problem.code is ErrorCode.RATE_LIMITED:
            raise
        return None
