"""Counting against a limit, exactly, across every process that shares the database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from config.http.errors import DomainError, ErrorCode
from config.models import Counter
from config.postgresql.compiling import fetch_rows
from config.postgresql.transactions import COMMIT_AT_ONCE

WINDOW_SECONDS = 60

WINDOW = f"date_bin('{WINDOW_SECONDS} seconds', statement_timestamp(), timestamptz 'epoch')"
_USAGE = f"key, count, date_part('epoch', \"window\" - statement_timestamp()) + {WINDOW_SECONDS}"
# The keys, and how often each is counted, come from a query that replaces the placeholder `keys`. The table is not
# logged, but even reading a row may write to the WAL: a hint bit, that its writer has committed.
INCREMENT = f"""
INSERT INTO config_counter AS present (key, "window", count)
SELECT key, {WINDOW}, count FROM ({{keys}}) AS keys (key, count)
WHERE {COMMIT_AT_ONCE}
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN present."window" = EXCLUDED."window" THEN present.count ELSE 0 END + EXCLUDED.count,
    "window" = EXCLUDED."window"
RETURNING {_USAGE}
"""  # noqa: S608 - of constants
# The rows are written in the order of their keys: two statements that meet on several keys cannot deadlock.
_INCREMENT_ALL = INCREMENT.format(keys="SELECT unnest(%s::text[]), 1 ORDER BY 1")
_FETCH = f'SELECT {_USAGE} FROM config_counter WHERE key = ANY(%s) AND "window" = {WINDOW}'  # noqa: S608


@dataclass(frozen=True, slots=True)
class Usage:
    """The state of a counter after counting; `reset` is in seconds from now."""

    count: int
    reset: float


class CountersUnavailable(Exception):  # noqa: N818 - named after what was met, as Django's errors of the database
    """Redis is unavailable, slow, or refuses to count."""


def increment(keys: Sequence[str]) -> Mapping[str, Usage]:
    """Counts the keys up in the present minute.

    Outside the request's transaction, since what is counted has happened even when the request fails: call it before
    one is opened.
    """
    return _fetch(_INCREMENT_ALL, keys)


def fetch(keys: Sequence[str]) -> Mapping[str, Usage]:
    """The state of the keys that were counted in the current minute."""
    return _fetch(_FETCH, keys)


def _fetch(sql: str, keys: Sequence[str]) -> Mapping[str, Usage]:
    return {key: Usage(count, reset) for key, count, reset in fetch_rows(sql, [list(keys)])}


def get_wait(usage: Mapping[str, Usage], limits: Mapping[str, int], more: int = 0) -> float | None:
    """The seconds until no limit is exceeded, nor would be by `more`; None if none is.

    A limit of 0 is none.
    """
    waits = [used.reset for key, used in usage.items() if limits[key] and used.count + more > limits[key]]
    return max(waits) if waits else None


def rate_limited(seconds: float) -> DomainError:
    wait = max(1, math.ceil(seconds))
    message = f"Too many requests. Try again in {wait} seconds."
    return DomainError(ErrorCode.RATE_LIMITED, message, headers={"Retry-After": str(wait)})


def expired(now: datetime) -> QuerySet[Counter]:
    """The counters of past windows: such a key starts from zero when it is counted again."""
    return Counter.objects.filter(window__lte=now - timedelta(seconds=WINDOW_SECONDS))
