"""Reads on replicas: which of them follow the primary closely, and which have replayed what a reader has seen.

Threads of their own ask the primary and each replica where they are, again and again: no request waits for a replica
that is away. A replica is left out, and taken back, by what it answers.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from threading import Thread
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from config.postgresql.probe import ask

logger = logging.getLogger(__name__)

reading_from: ContextVar[str | None] = ContextVar("reading_from", default=None)
"""The alias of the replica that what the present request reads comes from; None: the primary."""

SECONDS_BETWEEN_LOOKS = 0.1
# A replica that is silent for so long is left out.
SECONDS_TO_ANSWER = 0.5
# There is no primary where none has answered for so long.
SECONDS_WITHOUT_PRIMARY = 1.0

# In bytes from the beginning of the WAL.
_FLUSHED = "(pg_current_wal_flush_lsn() - '0/0')::bigint"
_REPLAYED = "(pg_last_wal_replay_lsn() - '0/0')::bigint"
POSITION = (
    "((CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()"
    " ELSE pg_current_wal_flush_lsn() END) - '0/0')::bigint"
)
"""SQL for how far the WAL must be replayed where all that was answered so far shall be seen."""
# The number of the timeline is the beginning of a segment's name.
_TIMELINE = (
    "(SELECT system_identifier FROM pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8)"
)
_MARK = "(SELECT name FROM config_timeline)"
_LOOK_AT_PRIMARY = f"SELECT {_FLUSHED}, {_TIMELINE}, {_MARK}"
_LOOK_AT_REPLICA = f"SELECT pg_is_in_recovery(), {_REPLAYED}, {_MARK}"
_WRITE_MARK = (
    "INSERT INTO config_timeline (id, name) VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
)


class ReplicaRouter:
    """Sends what a request reads to `reading_from`, and what it writes to the primary."""

    def db_for_read(self, model: Any, **hints: object) -> str:
        return reading_from.get() or DEFAULT_DB_ALIAS

    def db_for_write(self, model: Any, **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *objects: object, **hints: object) -> bool:
        """All of them hold the same rows."""
        return True

    def allow_migrate(self, db: str, *names: object, **hints: object) -> bool:
        return db == DEFAULT_DB_ALIAS


class _Replica:
    """What is known of a replica.

    Attributes:
        is_live: whether it answers, and follows the primary.
        replayed: how far, when it was last asked. It may be farther, and goes back only when it is started again.
        required: from where on it is taken back: nobody shall see it behind what was seen of it.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_live = False
        self.replayed = self.required = 0

    def follow(self, replayed: int) -> None:
        self.replayed = replayed
        if not self.is_live and replayed >= self.required:
            self.is_live = True
            logger.warning("The replica %s is read from.", self.alias)

    def leave(self, required: int, reason: object) -> None:
        self.required = required
        if self.is_live:
            self.is_live = False
            logger.warning("The replica %s is left out: %s", self.alias, str(reason).strip())


class Replicas:
    """The replicas as this process sees them, from `watch` on.

    Args:
        aliases: of their databases.
        max_lag: how many seconds ago the primary may have been as a replica is.
    """

    def __init__(self, aliases: list[str], max_lag: float) -> None:
        self._replicas = {alias: _Replica(alias) for alias in aliases}
        self._max_lag = max_lag
        # When the primary was asked, and how far it was then at the least; the oldest one first.
        self._looks: list[tuple[float, int]] = []
        self._timeline = ""

    def may_read(self, alias: str, position: int) -> bool:
        """Whether a replica may be read from by who has seen what stands before a position in the WAL."""
        replica = self._replicas.get(alias)
        if replica is None or not self._is_fresh(replica):
            return False
        return replica.replayed >= position or self._has_replayed(replica, position)

    def choose(self, alias: str | None = None) -> str:
        """The replica to read from in the future: the one that was read from before as long as it is fresh."""
        fresh = [replica.alias for replica in self._replicas.values() if self._is_fresh(replica)]
        if alias in fresh:
            return str(alias)
        return random.choice(fresh or list(self._replicas))  # noqa: S311 - to share the load

    def get_stand_in(self) -> str | None:
        """The replica that knows most, while there is no primary; None while there is one.

        It has replayed what the primary had written `max_lag` before it answered for the last time.
        """
        looks = self._looks
        if not looks or time.monotonic() - looks[-1][0] < SECONDS_WITHOUT_PRIMARY:
            return None
        known = [each for each in self._replicas.values() if each.is_live and each.replayed >= looks[0][1]]
        return max(known, key=lambda replica: replica.replayed).alias if known else None

    def is_live(self, alias: str) -> bool:
        return self._replicas[alias].is_live

    def leave(self, alias: str, reason: object) -> None:
        """Has a replica left out that has failed, until it answers again."""
        self._replicas[alias].leave(self._get_position(), reason)

    def _has_replayed(self, replica: _Replica, position: int) -> bool:
        try:
            with connections[replica.alias].cursor() as cursor:
                cursor.execute(f"SELECT {_REPLAYED} >= %s", [position])
                return bool(cursor.fetchone()[0])
        except Error as error:
            self.leave(replica.alias, error)
            return False

    def _is_fresh(self, replica: _Replica) -> bool:
        if not replica.is_live:
            return False
        oldest = time.monotonic() - self._max_lag
        return any(replica.replayed >= position for asked, position in self._looks if asked >= oldest)

    def _get_position(self) -> int:
        """Of the primary, as far as it is known."""
        return self._looks[-1][1] if self._looks else 0

    # --- Threads

    def watch(self) -> None:
        """Starts the threads that look."""
        Thread(target=_repeat, args=(self._look_at_primary,), name="primary", daemon=True).start()
        for replica in self._replicas.values():
            Thread(target=_repeat, args=(self._look_at_replica, replica), name=replica.alias, daemon=True).start()

    def _look_at_primary(self) -> None:
        asked = time.monotonic()
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            position, timeline, mark = ask(connection, _LOOK_AT_PRIMARY, SECONDS_TO_ANSWER)
            if timeline != mark:
                # It was promoted, or is new.
                with connection.cursor() as cursor:
                    cursor.execute(_WRITE_MARK, [timeline])
        except (Error, psycopg.Error):
            connection.close()
            return
        if timeline != self._timeline:
            # Where another one was says nothing of this one.
            self._timeline, self._looks = str(timeline), []
            for replica in self._replicas.values():
                replica.leave(0, "There is a new primary.")
        self._looks = [look for look in self._looks if look[0] >= asked - self._max_lag] + [(asked, int(position or 0))]

    def _look_at_replica(self, replica: _Replica) -> None:
        connection = connections[replica.alias]
        try:
            is_standby, replayed, mark = ask(connection, _LOOK_AT_REPLICA, SECONDS_TO_ANSWER)
        except (Error, psycopg.Error) as error:
            connection.close()
            replica.leave(self._get_position(), error)
            return
        if is_standby != "t":
            replica.leave(self._get_position(), "It is no standby.")
        elif mark != self._timeline:
            replica.leave(self._get_position(), "It does not follow the present primary yet.")
        else:
            replica.follow(int(replayed or 0))


def _repeat(look: Callable[..., None], *arguments: object) -> None:
    while True:
        try:
            look(*arguments)
        except Exception:
            logger.exception("%s failed", look.__qualname__)
        time.sleep(SECONDS_BETWEEN_LOOKS)


@cache
def get_replicas() -> Replicas:
    """Those of the settings. `serve` asks for them when a process begins, so that its first request knows them."""
    replicas = Replicas(settings.REPLICAS, settings.REPLICA_MAX_LAG)
    replicas.watch()
    return replicas
