"""Where databases are in the write-ahead log (WAL), which the primary writes and its standbys replay."""

from __future__ import annotations

from typing import NamedTuple, Self

WHEREABOUTS = "pg_walfile_name(pg_current_wal_flush_lsn()), pg_current_wal_flush_lsn()::text"
"""SQL for where the primary is: the file of the WAL that it writes, and how far. No replica is farther.

`Look.parse` takes it apart, which the primary would do for each read.
"""
REPLAYED = "(pg_last_wal_replay_lsn() - '0/0')::bigint"
"""SQL for how far a standby has replayed the WAL, in bytes from its beginning."""
POSITION = (
    "((CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()"
    " ELSE pg_current_wal_flush_lsn() END) - '0/0')::bigint"
)
"""SQL for how far a standby must have replayed it, in bytes, where all that was answered so far shall be seen."""
_TIMELINE_DIGITS = 8
TIMELINE = f"left(pg_walfile_name(pg_current_wal_flush_lsn()), {_TIMELINE_DIGITS})"
"""SQL for the timeline that the primary writes: the beginning of the name of each file."""


class Look(NamedTuple):
    """Where the primary was.

    Attributes:
        asked: when it was asked, by the monotonic clock.
        timeline: that it writes, as TIMELINE gives it.
        position: how far it was then at the least, in bytes from the beginning of the WAL.
    """

    asked: float
    timeline: str
    position: int

    @classmethod
    def parse(cls, asked: float, file: str, flushed: str) -> Self:
        """Makes it of what WHEREABOUTS gave."""
        high, _, low = flushed.partition("/")
        return cls(asked, file[:_TIMELINE_DIGITS], (int(high, 16) << 32) + int(low, 16))
