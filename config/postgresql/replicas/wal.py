"""Where databases are in the write-ahead log (WAL), which the primary writes and its standbys replay."""

from __future__ import annotations

from typing import NamedTuple

REPLAYED = "(pg_last_wal_replay_lsn() - '0/0')::bigint"
"""SQL for how far a standby has replayed the WAL, in bytes from its beginning."""
POSITION = (
    "((CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()"
    " ELSE pg_current_wal_flush_lsn() END) - '0/0')::bigint"
)
"""SQL for the position, in bytes, up to which a standby must have replayed it to show all confirmed writes."""
TIMELINE = "left(pg_walfile_name(pg_current_wal_flush_lsn()), 8)"
"""SQL for the timeline that the primary writes: the beginning of the name of each file."""
FLUSHED = "(pg_current_wal_flush_lsn() - '0/0')::bigint"
"""SQL for how far the primary has written it, in bytes. No replica is farther."""


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
