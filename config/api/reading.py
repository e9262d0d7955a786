"""Reads on replicas: no user is shown less than it was shown before, or has written.

Each user reads from one replica, from whichever node and by whichever credential, once that has replayed a position in
the WAL. Where it has not, the primary is read, and that moves the position on, as does a write: what comes later is
read where all of this is known. The position is read on the primary, when the credential is.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import Error, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter
from psycopg.errors import LockNotAvailable, QueryCanceled
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.backends import get_backend
from config.api.requests import AnyRequest
from config.api.views import ConventionsMixin
from config.http.middleware import GetResponse
from config.http.request_state import get_state, present_state
from config.postgresql.connections import close_if_lost
from config.postgresql.replicas import get_replicas
from config.postgresql.transactions import note_commit
from config.postgresql.wal import POSITION, TIMELINE, WHEREABOUTS, Look

logger = logging.getLogger(__name__)

READS = Counter("reads", "Requests that read rows, by the database that these came from.", ["database"])

# For so long, and at most once a second, a request waits until the replica of its user has caught up. Without it, who
# reads all the time would stay on the primary: each read there is to be caught up with, too.
SECONDS_TO_CATCH_UP = 0.02
# What is refused with these was refused before a row was looked at; a read with 400, too. But 403 tells that the row of
# the address is there, and so does the 400 of a write.
_UNSEEN = frozenset({401, 413, 415, 429})
# One value, which the look-up of a credential gives beside its columns: more of them, by a join, would take it a tenth
# more of the primary's time.
FETCH_POSITION = f"""
SELECT ARRAY[
    replica, timeline, position::text, (waited_at < now() - interval '1 second')::text, {WHEREABOUTS}
] FROM config_readposition WHERE user_id = {{}}
"""  # noqa: S608 - of constants
STORE = f"""
INSERT INTO config_readposition AS present (user_id, replica, timeline, position, waited_at)
VALUES (%s, %s, {TIMELINE}, {POSITION}, clock_timestamp() - interval '1 second')
ON CONFLICT (user_id) DO UPDATE SET
    replica = CASE WHEN %s THEN EXCLUDED.replica ELSE present.replica END,
    timeline = EXCLUDED.timeline,
    position = CASE WHEN present.timeline = EXCLUDED.timeline
        THEN greatest(present.position, EXCLUDED.position) ELSE EXCLUDED.position END,
    waited_at = CASE WHEN %s THEN clock_timestamp() ELSE present.waited_at END
"""  # noqa: S608 - of constants

# For the note of a write, which cannot be run again in the slow lane: about as long as a COMMIT may take.
PATIENCE = "SELECT set_config('lock_timeout', '2s', true), set_config('statement_timeout', '2s', true)"

# Users whose position could not be stored yet behind a write: here they read on the primary.
_unstored: set[int] = set()


class Position(NamedTuple):
    """From which replica a user reads, and how far that must have replayed the WAL of a timeline, in bytes.

    Attributes:
        look: where the primary was, which was asked for this.
    """

    replica: str
    timeline: str
    position: int
    may_wait: bool
    look: Look

    @classmethod
    def parse(cls, texts: Sequence[str], asked: float) -> Self:
        """Makes it of what FETCH_POSITION gave, which was asked for at a time of the monotonic clock."""
        replica, timeline, position, may_wait, *whereabouts = texts
        return cls(replica, timeline, int(position), may_wait == "true", Look.parse(asked, *whereabouts))


def begin(request: AnyRequest, user_id: int, *, may_read_replica: bool = True) -> None:
    """Has what the request reads from now on come from its user's replica, if that knows enough.

    Args:
        request: that only reads, and whose credential was found to be good.
        user_id: whose it is.
        may_read_replica: whether a replica is asked while there is a primary.
    """
    state = get_state(request.META)
    if state.stand_in:
        state.replica = state.stand_in
        return
    found = get_backend(settings.POSITION_BACKEND).fetch(request, user_id) if may_read_replica else None
    if found is None:
        READS.labels("primary").inc()
        return
    state.replica_before = found.replica
    replicas, (replica, timeline, position, may_wait, look) = get_replicas(), found
    replicas.note_look(look)
    is_known = user_id not in _unstored and replicas.may_read(replica, timeline, position)
    if not is_known and may_wait and replicas.may_wait and user_id not in _unstored:
        state.has_waited = True
        is_known = replicas.wait(replica, timeline, position, SECONDS_TO_CATCH_UP)
    if is_known:
        state.replica = replica
    READS.labels(replica if is_known else "primary").inc()


def fall_back(exception: BaseException) -> bool:
    """Has a request whose replica has failed read on the primary. Returns whether it is to be run again."""
    state = present_state.get()
    # Whatever it is: a replica may not have replayed a migration yet.
    if state is None or state.replica is None or not isinstance(exception, Error):
        return False
    alias, state.replica = state.replica, None
    if close_if_lost(alias):
        get_replicas().leave(alias, exception)
    READS.labels("primary").inc()
    return True


class PositionBackend:
    """What POSITION_BACKEND names: how the positions of users are read and stored."""

    def fetch(self, request: AnyRequest, user_id: int) -> Position | None:
        """What is known of a user."""
        asked = time.monotonic()
        with connection.cursor() as cursor:
            cursor.execute(FETCH_POSITION.format("%s"), [user_id])
            found = cursor.fetchone()
        return found and Position.parse(found[0], asked)

    def store(self, user_id: int, replica: str, *, moves: bool, has_waited: bool, is_patient: bool = False) -> None:
        """Moves the position of a user to the present one.

        Args:
            user_id: the user's.
            replica: from which it reads in the future.
            moves: whether that also holds where it has one.
            has_waited: whether the request has waited for the replica.
            is_patient: whether it is waited for beyond the time-outs of the fast lane.

        Raises:
            django.db.Error: nobody knows whether it was done.
        """
        # What is sent together is one transaction.
        sql = f"{PATIENCE}; {STORE}" if is_patient else STORE
        with connection.cursor() as cursor:
            cursor.execute(sql, [user_id, replica, moves, has_waited])


class ReadingMixin(ConventionsMixin):
    """What a viewset does to read from replicas.

    Attributes:
        may_read_replica: whether it does so at all.
    """

    may_read_replica = True

    def begin_reading(self, request: Request) -> None:
        """Is called when the request is known to be good, before its action reads anything."""
        begin(request, self.principal.user.pk, may_read_replica=self.may_read_replica)

    def parse_query(self, request: Request) -> None:
        """Reads what all actions have in common of the query."""

    def handle_exception(self, exc: Exception) -> Response:
        """DRF's hook; what a replica has failed to give is read on the primary."""
        response: Response
        if fall_back(exc):
            self.parameters = self.build_parameters(self.request)
            try:
                self.enveloped = self.parameters.flag("envelope", default=True)
                self.parse_query(self.request)
                response = getattr(self, self.action)(self.request, *self.args, **self.kwargs)
            except Exception as problem:  # noqa: BLE001 - as in DRF's dispatch
                exc = problem
            else:
                return response
        response = super().handle_exception(exc)
        return response


class ReadPositionMiddleware:
    """Notes behind each request what its user has seen on the primary: what it has written, or was shown from there."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.REPLICAS:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        state = get_state(request.META)
        try:
            response = self.get_response(request)
            is_of_primary = state.replica is None and state.stand_in is None
        finally:
            state.replica = None
        is_read = request.method in SAFE_METHODS
        # What fails shows nothing. But a write that failed may have been done.
        is_shown = response.status_code not in _UNSEEN
        if is_read:
            is_shown = is_shown and response.status_code != 400 and response.status_code < 500
        is_seen = is_of_primary and is_shown and request.method != "OPTIONS"
        has_waited = state.has_waited
        if is_seen or has_waited:
            try:
                _note(request, has_waited=has_waited, is_read=is_read, has_failed=response.status_code >= 500)
            except Error:
                if is_seen:
                    response.close()
                    raise
        return response


def _note(request: HttpRequest, *, has_waited: bool, is_read: bool, has_failed: bool) -> None:
    """Stores the position of a request's user, if it has one; behind a write that may be later.

    Raises:
        django.db.Error: it is not stored, and nothing was written that the answer would have to tell.
    """
    user_id = _get_user_id(request)
    if not user_id:
        return
    before = get_state(request.META).replica_before
    replica = get_replicas().choose(user_id)
    moves = before is not None and replica != before
    backend: PositionBackend = get_backend(settings.POSITION_BACKEND)
    store = partial(backend.store, user_id, replica, moves=moves, has_waited=has_waited)
    if is_read:
        store()
        return
    # From here on the request must not be run again.
    note_commit()
    try:
        if has_failed and get_replicas().get_stand_in() is not None:
            # To store it would be to wait for a connection.
            raise OperationalError("There is no primary.")
        _store_patiently(store)
    except Error as error:
        logger.warning("What user %s has written is noted later: %s", user_id, error)
        _unstored.add(user_id)
        get_replicas().do_later(partial(_store_later, user_id, store))


def _store_patiently(store: Callable[..., None]) -> None:
    """Stores the position behind a write, and waits for it as for a COMMIT.

    Until it is stored, the user may miss the write in other processes.
    """
    try:
        store()
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled | LockNotAvailable):
            raise
        store(is_patient=True)


def _store_later(user_id: int, store: Callable[[], None]) -> None:
    store()
    _unstored.discard(user_id)


def _get_user_id(request: Any) -> int | None:
    user_id = get_state(request.META).user_id
    # Of a page, which no quota counts, and where Django has looked for the user of its session.
    if user_id is None and (user := getattr(request, "_cached_user", None)):
        user_id = user.pk
    return user_id
