"""Reads on replicas: which of them follow the primary closely, and which have replayed what a reader has seen.

Threads of their own ask the primary and each replica where they are, again and again: no request waits for a replica
that is away. A replica is left out, and taken back, by what it answers.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock, Thread
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, OperationalError, connections
from django.db.backends.signals import connection_created

from config.http.request_state import present_state
from config.postgresql.compiling import fetch_rows
from config.postgresql.connections import ask, close_if_lost, cut_after, cut_waiting

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_BETWEEN_LOOKS_AT_PRIMARY = 0.2
# A replica that is silent for so long is taken out.
SECONDS_TO_ANSWER = 0.5
# A write of the thread that checks the primary waits no longer for it, so that the checks continue.
SECONDS_TO_WRITE = 1.0
SECONDS_BETWEEN_QUESTIONS = 0.001
# There is no primary where none has answered for so long.
SECONDS_WITHOUT_PRIMARY = 1.0

# SQL for how far a standby has replayed the WAL, in bytes from its beginning.
REPLAYED = "(pg_last_wal_replay_lsn() - '0/0')::bigint"
# SQL for the position, in bytes, up to which a standby must have replayed it to show all confirmed writes.
POSITION = (
    "((CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()"
    " ELSE pg_current_wal_flush_lsn() END) - '0/0')::bigint"
)
# SQL for the timeline that the primary writes: the beginning of the name of each file.
TIMELINE = "left(pg_walfile_name(pg_current_wal_flush_lsn()), 8)"
# SQL for how far the primary has written it, in bytes. No replica is farther.
FLUSHED = "(pg_current_wal_flush_lsn() - '0/0')::bigint"

# To look for it is to read a file: once for each connection.
_FETCH_IDENTIFIER = "SELECT system_identifier FROM pg_control_system()"
_MARK = "(SELECT name FROM config_timeline)"
# Without a table, whose plan would take longer than all of this.
_LOOK_AT_PRIMARY = f"SELECT {TIMELINE}, {FLUSHED}"
_LOOK_AT_REPLICA = f"SELECT pg_is_in_recovery(), {REPLAYED}, {_MARK}"
_WRITE_MARK = (
    "INSERT INTO config_timeline (id, name) VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
)


class Look(NamedTuple):
    """Where the primary was.

    Attributes:
        asked: when it was asked, by the monotonic clock.
        timeline: that it writes, as TIMELINE gives it.
        position: how far it was then at least, in bytes from the beginning of the WAL.
    """

    asked: float
    timeline: str
    position: int


class _Replica:
    """The known state of a replica.

    Attributes:
        is_live: whether it answers, and follows the primary.
        replayed: how far, when it was last asked. It may be farther, and goes back only when it is started again. 0: it
            is left out, and has not answered since.
        left_at: when it was last left out, by the monotonic clock.
        can_stand_in: whether it answered its last look, and follows the primary, or the one that there was.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_live = False
        self.replayed = 0
        self.left_at = 0.0
        self.can_stand_in = False

    def follow(self, replayed: int, looks: Sequence[Look]) -> None:
        """Takes it back once it has replayed what the primary had written after it was taken out.

        It must not show anything older than it showed before.
        """
        self.replayed, self.can_stand_in = replayed, True
        if not self.is_live and any(replayed >= look.position for look in looks if look.asked > self.left_at):
            self.is_live = True
            logger.warning("The replica %s is read from.", self.alias)

    def leave(self, reason: object) -> None:
        self.left_at = time.monotonic()
        self.replayed = 0
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
        self._replicas = {alias: _Replica(alias) for alias in sorted(aliases)}
        self._max_lag = max_lag
        # Of the current timeline, the oldest one first.
        self._looks: list[Look] = []
        self._timeline = ""
        # Whether the primary bears another mark than that of its timeline, as far as is known.
        self._is_unmarked = True
        # The connection to the primary, and which database server that is.
        self._identified: Any = None
        self._identifier: int | None = None
        self._has_primary = False
        self._lock = Lock()
        self._may_wait_at = 0.0
        self._later: deque[Callable[[], None]] = deque()
        connection_created.connect(self._check_new_connection)

    def may_read(self, alias: str, timeline: str, position: int) -> bool:
        """Whether somebody who has seen the WAL up to a position, in bytes, may read from a replica."""
        replica = self._replicas.get(alias)
        if replica is None or not self._timeline.endswith(timeline) or not self._is_fresh(replica):
            return False
        return replica.replayed >= position or self._has_replayed(replica, position)

    @property
    def may_wait(self) -> bool:
        """Whether a request may wait for a replica: all of this process do so for a tenth of the time."""
        return time.monotonic() >= self._may_wait_at

    def wait(
        self, alias: str, timeline: str, position: int, seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> bool:
        """The result of `may_read` within a number of seconds.

        Args:
            sleep: waits for a number of seconds between two checks.
        """
        began = now = time.monotonic()
        is_known = False
        while not is_known and now < began + seconds:
            sleep(SECONDS_BETWEEN_QUESTIONS)
            is_known = self.may_read(alias, timeline, position)
            now = time.monotonic()
        self._may_wait_at = now + 9 * (now - began)
        return is_known

    def do_later(self, function: Callable[[], None]) -> None:
        """Runs something on the primary as soon as that answers, and again if the database refuses it."""
        self._later.append(function)

    def choose(self, user_id: int) -> str:
        """The replica that a user reads from in the future: always the same one while all of them are fresh."""
        fresh = [alias for alias, replica in self._replicas.items() if self._is_fresh(replica)] or list(self._replicas)
        return fresh[user_id % len(fresh)]

    def get_stand_in(self) -> str | None:
        """The replica that knows most, while there is no primary; None while there is one.

        It has replayed what the primary had written `max_lag` before it answered for the last time.
        """
        looks = self._looks
        # A look that is late says nothing of the primary.
        if self._has_primary or not looks or time.monotonic() - looks[-1].asked < SECONDS_WITHOUT_PRIMARY:
            return None
        known = [each for each in self._replicas.values() if each.can_stand_in and each.replayed >= looks[0].position]
        return max(known, key=lambda replica: replica.replayed).alias if known else None

    def is_read(self, alias: str) -> bool:
        """Whether a replica is read from: it answers and follows the primary, or stands in for the primary."""
        return self._replicas[alias].is_live or self.get_stand_in() == alias

    def leave(self, alias: str, reason: object) -> None:
        """Takes out a replica that has failed, until it answers again."""
        with self._lock:
            self._replicas[alias].leave(reason)

    def _has_replayed(self, replica: _Replica, position: int) -> bool:
        try:
            return bool(fetch_rows(f"SELECT {REPLAYED} >= %s", [position], replica.alias)[0][0])
        except Error:
            # The thread that checks it says whether it is down.
            close_if_lost(replica.alias)
            return False

    def _check_new_connection(self, connection: Any, **options: object) -> None:
        """Fails a read on a new connection if its replica has restarted, and gone back, since the last check.

        A server that was killed takes connections as soon as its data is consistent. It may have shown more before.

        Raises:
            OperationalError: it has gone back, or was left out since it was chosen for a read.
        """
        replica = self._replicas.get(connection.alias)
        if replica is None:
            return
        state = present_state.get()
        is_chosen = state is not None and state.replica == replica.alias
        if is_chosen and not self.is_read(replica.alias):
            raise OperationalError(f"The replica {replica.alias} is left out.")
        remembered = replica.replayed
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {REPLAYED}")
            (replayed,) = cursor.fetchone()
        if (replayed or 0) < remembered:
            self.leave(replica.alias, "It was started again, and is behind what it was.")
            raise OperationalError(f"The replica {replica.alias} is behind what it was.")

    def _is_fresh(self, replica: _Replica) -> bool:
        if not replica.is_live:
            return False
        oldest = time.monotonic() - self._max_lag
        return any(replica.replayed >= look.position for look in self._looks if look.asked >= oldest)

    # --- Threads

    def watch(self) -> None:
        """Starts the threads that look."""
        arguments = (SECONDS_BETWEEN_LOOKS_AT_PRIMARY, self._look_at_primary)
        Thread(target=_repeat, args=arguments, name="primary", daemon=True).start()
        for replica in self._replicas.values():
            look = (SECONDS_BETWEEN_LOOKS, self._look_at_replica, replica)
            Thread(target=_repeat, args=look, name=replica.alias, daemon=True).start()

    def _look_at_primary(self) -> None:
        asked = time.monotonic()
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            if connection.connection is None or connection.connection is not self._identified:
                (self._identifier,) = ask(connection, _FETCH_IDENTIFIER, SECONDS_TO_ANSWER)
                self._identified = connection.connection
            look = Look(asked, *ask(connection, _LOOK_AT_PRIMARY, SECONDS_TO_ANSWER))
            timeline = f"{self._identifier}/{look.timeline}"
            if self._is_unmarked or timeline != self._timeline:
                _mark(connection, timeline)
                self._is_unmarked = False
        except Error as error:
            connection.close()
            self._note_primary(error)
            return
        self._note_primary(None)
        self._catch_up()
        with self._lock:
            if timeline != self._timeline:
                # The position of another primary says nothing about this one.
                self._looks = []
                for replica in self._replicas.values():
                    replica.leave("There is a new primary.")
                self._timeline = timeline
            # The newest one older than `max_lag` stays: this thread may be late, and this check the last one.
            older = sum(each.asked < look.asked - self._max_lag for each in self._looks)
            self._looks = [*self._looks[max(0, older - 1) :], look]

    def _catch_up(self) -> None:
        while self._later:
            try:
                with cut_after(SECONDS_TO_WRITE, connections[DEFAULT_DB_ALIAS]):
                    self._later[0]()
            except Error:
                close_if_lost(DEFAULT_DB_ALIAS)
                return
            self._later.popleft()

    def _note_primary(self, error: Exception | None) -> None:
        if (error is None) != self._has_primary:
            self._has_primary = error is None
            logger.warning("The primary %s", "answers." if error is None else f"does not say where it is: {error}")

    def _look_at_replica(self, replica: _Replica) -> None:
        connection = connections[replica.alias]
        try:
            is_standby, replayed, mark = ask(connection, _LOOK_AT_REPLICA, SECONDS_TO_ANSWER)
        except Error as error:
            connection.close()
            replica.can_stand_in = False
            self.leave(replica.alias, error)
            cut_waiting(replica.alias)
            return
        with self._lock:
            replica.can_stand_in = False
            if not is_standby:
                replica.leave("It is no standby.")
            elif mark != self._timeline:
                # Or the primary has lost its mark.
                self._is_unmarked = True
                replica.leave("It does not follow the present primary yet.")
            else:
                replica.follow(replayed or 0, self._looks)


def _mark(primary: Any, timeline: str) -> None:
    """Writes the mark of the primary's timeline, by which replicas show which primary they follow."""
    if ask(primary, f"SELECT {_MARK}", SECONDS_TO_ANSWER) != (timeline,):
        # It was promoted, or is new.
        with cut_after(SECONDS_TO_WRITE, primary), primary.cursor() as cursor:
            cursor.execute(_WRITE_MARK, [timeline])


def _repeat(seconds: float, look: Callable[..., None], *arguments: object) -> None:
    while True:
        try:
            look(*arguments)
        except Exception:
            logger.exception("%s failed", look.__qualname__)
        time.sleep(seconds)


def find_stand_in() -> str | None:
    """The alias of the replica that even credentials are read from while reads continue without a primary."""
    return get_replicas().get_stand_in() if settings.READ_ONLY_WITHOUT_PRIMARY else None


def goes_on_without_primary() -> bool:
    """Whether there is no primary, and reads do without one."""
    return find_stand_in() is not None


@cache
def get_replicas() -> Replicas:
    """Those of the settings. `serve` asks for them when a process begins, so that its first request knows them."""
    replicas = Replicas(settings.REPLICAS, settings.REPLICA_MAX_LAG)
    replicas.watch()
    return replicas
