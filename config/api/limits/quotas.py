"""Quotas: how many requests a user, or an address that sends no good credential, may make in a minute."""

from __future__ import annotations

import logging
import math
from typing import Any

from django.db import Error
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.settings import api_settings

from config.api.exceptions import plain_response
from config.api.limits import counters
from config.api.settings import settings
from config.api.versions.paths import is_oauth, is_versioned
from config.fastpath.compiled_query import Statement
from config.http.client_address import client_address, network_of
from config.http.errors import DomainError
from config.http.middleware import GetResponse
from config.postgresql.transactions import is_away

logger = logging.getLogger(__name__)

_FIELDS = "config.quota"
# Where a request keeps what the look-up of its credential counted: the key, and where it stands.
_COUNTED = "config.quota_counted"


class Credentials:
    """Looks up credentials of one kind, and in the same statement counts the request for the user of a good one.

    Args:
        rows: the one, or none, that is good as far as the database can tell, with its user as `charged`; with
            Parameters.
    """

    def __init__(self, rows: QuerySet[Any]) -> None:
        one = rows.order_by()
        self._look_up = Statement(one)
        self._look_up_and_count = Statement(one, lambda sql: counters.counting(sql, "'quota:' || charged"), writes=True)

    def find(self, request: Any, **values: Any) -> Any:
        """The row of a credential, None for one that is no good.

        What it counts is taken back by `charge` when the credential is refused after all.

        Args:
            request: whose credential it is; None for no request's.
            values: of the Parameters.
        """
        counts = request and settings.RATE_LIMIT_PRINCIPAL and _COUNTED not in request.META and _counts(request)
        found = self._counted(values) if counts else self._look_up.first(**values)
        if found is None:
            return None
        row, usage = found
        if usage:
            request.META[_COUNTED] = (f"quota:{row.charged}", counters.Usage(*usage))
        return row

    def _counted(self, values: dict[str, Any]) -> Any:
        try:
            return self._look_up_and_count.first(**values)
        except Error as error:
            if not is_away(error):
                raise
        # A standby can be read, though it takes no counts.
        return self._look_up.first(**values)


def charge(request: Any, user: Any) -> None:
    """Counts a request, once, before anything is done for it.

    A credential that is no good counts for the address it comes from: nobody uses up the quota of somebody else by
    guessing. While the database is away nothing is limited, since what needs no database shall answer.

    Args:
        request: of Django or of DRF.
        user: whom its credential belongs to; None for no credential, and for one that is no good.

    Raises:
        DomainError: RATE_LIMITED, the quota of this minute is used up.
    """
    counted = request.META.pop(_COUNTED, None)
    if not (counted or _counts(request)):
        return
    policy, limit = (
        ("anonymous", settings.RATE_LIMIT_ANONYMOUS) if user is None else ("principal", settings.RATE_LIMIT_PRINCIPAL)
    )
    request.META[_FIELDS] = {}
    key = f"quota:{network_of(client_address(request)) if user is None else user.pk}"
    try:
        if counted and counted[0] != key:
            # The credential was found, and refused after all.
            counters.take_back(counted[0])
            counted = None
        if not limit:
            return
        used = counted[1] if counted else counters.count([key])[key]
    except Error as error:
        if not is_away(error):
            raise
        logger.warning("A request was not counted: %s", error)
        return
    request.META[_FIELDS] = _fields(policy, limit, used)
    wait = counters.exceeded({key: used}, {key: limit})
    if wait is not None:
        raise counters.rate_limited(wait)


def _counts(request: Any) -> bool:
    return _FIELDS not in request.META and (is_versioned(request.path_info) or is_oauth(request.path_info))


def _fields(policy: str, limit: int, used: counters.Usage) -> dict[str, str]:
    """draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4: lists of structured fields (RFC 9651)."""
    return {
        "RateLimit-Policy": f'"{policy}";q={limit};w={counters.WINDOW_SECONDS}',
        "RateLimit": f'"{policy}";r={max(0, limit - used.count)};t={math.ceil(used.reset)}',
    }


class QuotaMiddleware:
    """Puts the quota's fields on each answer that counts, and counts the requests that no view has.

    Those are of unknown addresses, redirected, or refused before or beside their view; nothing was done for them.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if _counts(request) and response.status_code < 500:
            try:
                charge(request, _caller(request))
            except DomainError as problem:
                response = plain_response(problem, request)
        for name, value in request.META.get(_FIELDS, {}).items():
            response.headers[name] = value
        return response


def _caller(request: HttpRequest) -> Any:
    """The user whom the credential of a request belongs to, None when it has no good one."""
    if is_oauth(request.path_info):
        return None
    authenticators = [authenticator() for authenticator in api_settings.DEFAULT_AUTHENTICATION_CLASSES]
    try:
        return Request(request, authenticators=authenticators).user
    except (DomainError, APIException):
        return None
    except Error as error:
        if is_away(error):
            return None
        raise
