"""Reads on replicas: no user is shown less than it was shown before, or has written.

Each user reads from one replica, from whichever node and by whichever credential, once that has replayed a position in
the WAL. Where it has not, the primary is read, and that moves the position on, as does a write: what comes later is
read where all of this is known. The position is read on the primary, when the credential is.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from django.db import DEFAULT_DB_ALIAS, Error, OperationalError
from prometheus_client import Counter

from config.http.blocking import get_blocking_backend
from config.http.request_state import RequestState, present_state
from config.postgresql.compiling import fetch_rows
from config.postgresql.connections import close_if_lost
from config.postgresql.replicas.watch import POSITION, TIMELINE, get_replicas
from config.postgresql.transactions import run_alone

logger = logging.getLogger(__name__)

READS = Counter("reads", "Requests that read rows, by the database that these came from.", ["database"])

# For so long, and at most once a second, a request waits until the replica of its user has caught up. Without it, a
# user who reads all the time would stay on the primary: the replica has to catch up with each read there, too.
SECONDS_TO_CATCH_UP = 0.02
# One value, which the look-up of a credential returns in addition to its columns: several, by a join, would take a
# tenth more of the primary's time.
FETCH_POSITION = """
SELECT ARRAY[replica, timeline, position::text, (waited_at < now() - interval '1 second')::text]
FROM config_readposition WHERE user_id = {}
"""
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

# Users whose position could not be stored yet behind a write: here they read on the primary.
_unstored: set[int] = set()


def get_read_alias() -> str | None:
    """The alias of the replica that what the present request reads comes from; None for the primary."""
    state = present_state.get()
    return None if state is None else state.replica


class ReplicaRouter:
    """Sends what a request reads to its replica, and what it writes to the primary."""

    def db_for_read(self, model: Any, **hints: object) -> str:
        return get_read_alias() or DEFAULT_DB_ALIAS

    def db_for_write(self, model: Any, **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *objects: object, **hints: object) -> bool:
        """All of them hold the same rows."""
        return True

    def allow_migrate(self, db: str, *names: object, **hints: object) -> bool:
        return db == DEFAULT_DB_ALIAS


class Position(NamedTuple):
    """From which replica a user reads, and how far that must have replayed the WAL of a timeline, in bytes."""

    replica: str
    timeline: str
    position: int
    may_wait: bool

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        """Makes it of what FETCH_POSITION gave."""
        replica, timeline, position, may_wait = texts
        return cls(replica, timeline, int(position), may_wait == "true")


def begin_read(state: RequestState, user_id: int, *, may_read_replica: bool = True) -> None:
    """Makes a request read from its user's replica from now on, if that has replayed enough.

    Args:
        state: of a request that only reads, and whose credential was found to be good.
        user_id: whose it is.
        may_read_replica: whether a replica is asked while there is a primary.
    """
    if state.stand_in:
        state.replica = state.stand_in
        return
    found = _fetch_position(state, user_id) if may_read_replica else None
    if found is None:
        READS.labels("primary").inc()
        return
    state.replica_before = found.replica
    replicas, (replica, timeline, position, may_wait) = get_replicas(), found
    is_known = user_id not in _unstored and replicas.may_read(replica, timeline, position)
    if not is_known and may_wait and replicas.may_wait and user_id not in _unstored:
        state.has_waited = True
        is_known = replicas.wait(replica, timeline, position, SECONDS_TO_CATCH_UP, get_blocking_backend().sleep)
    if is_known:
        state.replica = replica
    READS.labels(replica if is_known else "primary").inc()


def fall_back(exception: BaseException) -> bool:
    """Makes a request whose replica has failed read from the primary. Returns whether to run it again."""
    state = present_state.get()
    # Whatever it is: a replica may not have replayed a migration yet.
    if state is None or state.replica is None or not isinstance(exception, Error):
        return False
    alias, state.replica = state.replica, None
    if close_if_lost(alias):
        get_replicas().leave(alias, exception)
    READS.labels("primary").inc()
    return True


def _fetch_position(state: RequestState, user_id: int) -> Position | None:
    """The stored position of a user, which may have been read with its credential."""
    if state.position_read is not None:
        texts, state.position_read = state.position_read, None
        return Position.parse(texts) if texts else None
    found = fetch_rows(FETCH_POSITION.format("%s"), [user_id])
    return Position.parse(found[0][0]) if found else None


def note_position(state: RequestState, user_id: int, *, is_read: bool, has_failed: bool) -> None:
    """Moves the position of a request's user to the present one; behind a write that may be later.

    Args:
        state: of the request.
        user_id: whose it is.
        is_read: whether it only reads.
        has_failed: whether it was answered by a fault of the service.

    Raises:
        django.db.Error: it is not stored, and nothing was written that the answer would have to tell.
    """
    before = state.replica_before
    replica = get_replicas().choose(user_id)
    values = user_id, replica, before is not None and replica != before, state.has_waited
    if is_read:
        run_alone(STORE, values)
        return
    try:
        if has_failed and get_replicas().get_stand_in() is not None:
            # To store it would be to wait for a connection.
            raise OperationalError("There is no primary.")
        run_alone(STORE, values)
    except Error as error:
        logger.warning("What user %s has written is noted later: %s", user_id, error)
        _unstored.add(user_id)
        get_replicas().do_later(partial(_store_later, values))


def _store_later(values: Sequence[Any]) -> None:
    run_alone(STORE, values)
    _unstored.discard(values[0])
