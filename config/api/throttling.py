"""Counting against a limit, exactly, across every process that shares the database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from config.api.errors import DomainError, ErrorCode

WINDOW_SECONDS = 60

# The rows are written in the order of their keys: two statements that meet on several keys cannot deadlock.
_COUNT = f"""
INSERT INTO config_counter AS present (key, "window", count)
SELECT key, date_bin('{WINDOW_SECONDS} seconds', statement_timestamp(), timestamptz 'epoch'), %s
FROM unnest(%s::text[]) AS key ORDER BY key
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN present."window" = EXCLUDED."window" THEN greatest(present.count + EXCLUDED.count, 0)
                 ELSE greatest(EXCLUDED.count, 0) END,
    "window" = EXCLUDED."window"
RETURNING key, count, extract(epoch FROM "window") + {WINDOW_SECONDS} - extract(epoch FROM statement_timestamp())
"""  # noqa: S608 - the one value written into it is a constant


@dataclass(frozen=True, slots=True)
class Usage:
    """Where a counter stands after it was counted: `reset` is in seconds from now."""

    count: int
    reset: float


def count(keys: Sequence[str], by: int = 1) -> Mapping[str, Usage]:
    """Counts up (or back, where something counted turned out not to count) the keys in the present minute.

    Outside the request's transaction, since what is counted has happened even when the request fails: call it before
    one is opened.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [by, list(keys)])
        return {key: Usage(number, float(reset)) for key, number, reset in cursor.fetchall()}


def exceeded(usage: Mapping[str, Usage], limits: Mapping[str, int]) -> float | None:
    """The seconds until the last exceeded limit is over; None when none is. A limit of 0 is none."""
    waits = [used.reset for key, used in usage.items() if limits[key] and used.count > limits[key]]
    return max(waits) if waits else None


def rate_limited(seconds: float) -> DomainError:
    wait = max(1, math.ceil(seconds))
    return DomainError(
        ErrorCode.RATE_LIMITED, f"Too many; try again in {wait} seconds.", headers={"Retry-After": str(wait)}
    )
