"""Reads on replicas: no user is shown less than it was shown before, or has written.

Each user reads from one replica, from whichever node and by whichever credential, once that has replayed a position in
the WAL. Where it has not, the primary is read, and that moves the position on, as does a write: what comes later is
read where all of this is known. The position is read on the primary, when the credential is.
"""

import logging
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import Error, connection, connections
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.limits.quotas import CALLER, STAND_IN
from config.api.requests import AnyRequest
from config.api.views import ConventionsMixin
from config.http.middleware import GetResponse
from config.postgresql.replicas import POSITION, get_replicas, reading_from
from config.postgresql.transactions import is_unavailable

logger = logging.getLogger(__name__)

READS = Counter("reads", "Requests that read rows, by the database that these came from.", ["database"])

# Where the environment of a request notes that it has read on the primary: from where its user read before.
_READ_ON_PRIMARY = "config.reading.primary"
_FETCH = "SELECT replica, position FROM config_readposition WHERE user_id = %s"
STORE = f"""
INSERT INTO config_readposition AS present (user_id, replica, position) VALUES (%s, %s, {POSITION})
ON CONFLICT (user_id) DO UPDATE SET
    replica = CASE WHEN %s THEN EXCLUDED.replica ELSE present.replica END,
    position = greatest(present.position, EXCLUDED.position)
"""  # noqa: S608 - of constants


class Position(NamedTuple):
    """From which replica a user reads, and how far that must have replayed the WAL, in bytes."""

    replica: str
    position: int


def begin(request: AnyRequest, user_id: int) -> None:
    """Has what the request reads from now on come from its user's replica, if that knows enough.

    Args:
        request: that only reads, and whose credential was found to be good.
        user_id: whose it is.
    """
    if stand_in := request.META.get(STAND_IN):
        reading_from.set(stand_in)
        return
    found = fetch_position(request, user_id)
    if found and get_replicas().may_read(*found):
        reading_from.set(found.replica)
        READS.labels(found.replica).inc()
    else:
        _read_on_primary(request, found.replica if found else "")


def fall_back(request: AnyRequest, exception: BaseException) -> bool:
    """Has a request whose replica has failed read on the primary. Returns whether it is to be run again."""
    alias = reading_from.get()
    if alias is None or not is_unavailable(exception):
        return False
    reading_from.set(None)
    raw = connections[alias].connection
    if raw is None or raw.closed:
        get_replicas().leave(alias, exception)
    _read_on_primary(request, alias)
    return True


def _read_on_primary(request: AnyRequest, replica: str) -> None:
    request.META[_READ_ON_PRIMARY] = replica
    READS.labels("primary").inc()


def fetch_position(request: AnyRequest, user_id: int) -> Position | None:
    """What is known of a user; the accelerator has read it with the credential."""
    with connection.cursor() as cursor:
        cursor.execute(_FETCH, [user_id])
        found = cursor.fetchone()
    return found and Position(*found)


def store_position(user_id: int, replica: str, *, moves: bool) -> None:
    """Moves the position of a user to the present one.

    Args:
        user_id: the user's.
        replica: from which it reads in the future.
        moves: whether that also holds where it has one.

    Raises:
        django.db.Error: nobody knows whether it was done.
    """
    with connection.cursor() as cursor:
        cursor.execute(STORE, [user_id, replica, moves])


class ReadingMixin(ConventionsMixin):
    """What a viewset does to read from replicas."""

    def begin_reading(self, request: Request) -> None:
        """Is called when the request is known to be good, before its action reads anything."""
        begin(request, self.principal.user.pk)

    def parse_query(self, request: Request) -> None:
        """Reads what all actions have in common of the query."""

    def handle_exception(self, exc: Exception) -> Response:
        """DRF's hook; what a replica has failed to give is read on the primary."""
        response: Response
        if fall_back(self.request, exc):
            self.parameters = self.build_parameters(self.request)
            try:
                self.parse_query(self.request)
                response = getattr(self, self.action)(self.request, *self.args, **self.kwargs)
            except Exception as problem:  # noqa: BLE001 - as in DRF's dispatch
                exc = problem
            else:
                return response
        response = super().handle_exception(exc)
        return response


class ReadPositionMiddleware:
    """Notes behind each request what its user has seen of the primary: a credential and a refusal tell, too."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.REPLICAS:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = reading_from.set(None)
        try:
            response = self.get_response(request)
            is_of_primary = reading_from.get() is None and STAND_IN not in request.META
        finally:
            reading_from.reset(token)
        if is_of_primary and (user_id := _get_user_id(request)):
            before = request.META.get(_READ_ON_PRIMARY)
            replica = get_replicas().choose(before)
            try:
                store_position(user_id, replica, moves=before is not None and replica != before)
            except Error:
                if request.method in SAFE_METHODS:
                    raise
                # A write is done, and is to be told. A primary that is lost takes the positions with it.
                logger.exception("What user %s has written may be read late", user_id)
        return response


def _get_user_id(request: Any) -> int | None:
    user_id: int | None = request.META.get(CALLER)
    # Of a page, which no quota counts, and which may be shown without a look at the database.
    if user_id is None and (request.method not in SAFE_METHODS or _READ_ON_PRIMARY in request.META):
        user = getattr(request, "user", None)
        user_id = user.pk if user else None
    return user_id
