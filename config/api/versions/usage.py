"""Who still calls which version, and how it answers: counted in each process, and written down every few seconds.

A write for each request would cost more than many a request does. A process that is killed takes its last seconds
with it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from functools import cache
from threading import Lock
from typing import Any

import prometheus_client
from django.contrib.auth import get_user_model
from django.db import Error, connection, transaction

from config.api.principal import Principal
from config.api.versions.table import Version

SECONDS_BETWEEN_WRITES = 10

# In the order of the unique columns: two processes that write the same rows cannot deadlock. Nothing of a user who was
# removed since: the rows that went then would come back. The lock makes a removal that is under way finish first.
_WRITE = """
WITH seen AS (
    SELECT * FROM unnest(%s::int[], %s::bigint[], %s::text[], %s::text[], %s::bigint[])
        AS seen (version, user_id, kind, credential, count)
), known AS (
    SELECT id FROM {users} WHERE id IN (SELECT user_id FROM seen) AND removed_at IS NULL ORDER BY id FOR KEY SHARE
)
INSERT INTO config_versionuse AS present (day, version, user_id, kind, credential, count)
SELECT (now() AT TIME ZONE 'UTC')::date, version, user_id, kind, credential, count
FROM seen LEFT JOIN known ON known.id = user_id
WHERE user_id IS NULL OR known.id IS NOT NULL
ORDER BY user_id, version, kind, credential
ON CONFLICT (user_id, day, version, kind, credential) DO UPDATE SET count = present.count + EXCLUDED.count
"""
_WRITE_ANSWERS = """
INSERT INTO config_answercount AS present (day, version, status, count)
SELECT (now() AT TIME ZONE 'UTC')::date, version, status, count
FROM unnest(%s::int[], %s::int[], %s::bigint[]) AS seen (version, status, count)
ORDER BY version, status
ON CONFLICT (day, version, status) DO UPDATE SET count = present.count + EXCLUDED.count
"""

logger = logging.getLogger(__name__)

_REQUESTS = prometheus_client.Counter(
    "api_version_requests", "Requests to the API, by the kind of their credential.", ["version", "kind"]
)
_requests = cache(_REQUESTS.labels)


class VersionUses:
    """The counts of a process that are not written down yet.

    Uses are counted by version, user, kind and name of the credential, answers by version and status.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int | None, str, str]] = Counter()
        self._answers: Counter[tuple[int, int]] = Counter()
        self._lock = Lock()
        self._next_write = 0.0

    def count(self, version: Version, principal: Principal | None, status: int) -> None:
        """Counts an answer of a version: of which user, by which credential; nobody's, where there was no good one."""
        user, kind, name = (None, "", "")
        if principal is not None:
            user, kind, name = principal.user.id, principal.kind, principal.credential
        _requests(version.number, kind or "none").inc()
        with self._lock:
            self._counts[version.number, user, kind, name] += 1
            self._answers[version.number, status] += 1

    def write_when_due(self) -> None:
        """Writes the counts down unless that was done a few seconds ago."""
        now = time.monotonic()
        if now >= self._next_write:
            self._next_write = now + SECONDS_BETWEEN_WRITES
            self.write()

    def write(self) -> None:
        """Adds the counts to the table, outside of any request's transaction.

        While the database is away they are kept for the next time.
        """
        with self._lock:
            uses, self._counts = self._counts, Counter()
            answers, self._answers = self._answers, Counter()
        if not uses:
            return
        try:
            # Both or none, or what is kept for the next time would be counted twice.
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(_WRITE.format(users=get_user_model()._meta.db_table), _columns(uses))
                cursor.execute(_WRITE_ANSWERS, _columns(answers))
        except Error as error:
            logger.warning("The use of versions was not written down: %s", error)
            with self._lock:
                self._counts.update(uses)
                self._answers.update(answers)


def _columns(counts: Counter[Any]) -> list[list[Any]]:
    return [list(column) for column in zip(*((*counted, number) for counted, number in counts.items()), strict=True)]


uses = VersionUses()
