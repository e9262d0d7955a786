"""Who still calls which version, how it answers, and what it answers again: counted in each process, and written down
every few seconds.

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
# In one order, so that two processes that write the same rows cannot deadlock. Rows that were purged are left out.
_WRITE_REPLAYS = """
WITH seen AS (
    SELECT * FROM unnest(%s::bigint[], %s::int[]) AS seen (id, count)
), known AS (
    SELECT id FROM config_idempotencyrecord WHERE id IN (SELECT id FROM seen) ORDER BY id FOR NO KEY UPDATE
)
UPDATE config_idempotencyrecord AS record SET replays = replays + count, replayed_at = statement_timestamp()
FROM known JOIN seen USING (id) WHERE record.id = known.id
"""
# Whose replays are told apart until the next write. In an outage all clients retry at once: the metric counts them all.
MAX_REPLAYED = 1_000

logger = logging.getLogger(__name__)

_REQUESTS = prometheus_client.Counter(
    "api_version_requests", "Requests to the API, by the kind of their credential.", ["version", "kind"]
)
_requests = cache(_REQUESTS.labels)


class VersionUses:
    """The counts of a process that are not written down yet.

    Uses are counted by version, user, kind and name of the credential, answers by version and status, replays by the
    record of the answer.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int | None, str, str]] = Counter()
        self._answers: Counter[tuple[int, int]] = Counter()
        self._replays: Counter[int] = Counter()
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

    def count_replay(self, record_id: int) -> None:
        """Counts that the answer of an idempotency record was given again."""
        with self._lock:
            if len(self._replays) < MAX_REPLAYED or record_id in self._replays:
                self._replays[record_id] += 1

    def write_when_due(self) -> None:
        """Writes the counts down unless that was done a few seconds ago."""
        now = time.monotonic()
        if now >= self._next_write:
            self._next_write = now + SECONDS_BETWEEN_WRITES
            self.write()

    def write(self) -> None:
        """Adds the counts to the table, outside of any request's transaction.

        While the database is unavailable they stay in memory until the next time.
        """
        with self._lock:
            uses, self._counts = self._counts, Counter()
            answers, self._answers = self._answers, Counter()
            replays, self._replays = self._replays, Counter()
        if not (uses or replays):
            return
        try:
            # All or nothing, or what stays in memory would be counted twice.
            with transaction.atomic(), connection.cursor() as cursor:
                # Requests wait meanwhile, and nothing that a crash may take with it is worth a wait for the disk.
                cursor.execute("SET LOCAL synchronous_commit = off")
                cursor.execute(_WRITE.format(users=get_user_model()._meta.db_table), _columns(uses))
                cursor.execute(_WRITE_ANSWERS, _columns(answers))
                if replays:
                    cursor.execute(_WRITE_REPLAYS, [list(replays), list(replays.values())])
        except Error as error:
            logger.warning("The use of versions was not written down: %s", error)
            with self._lock:
                self._counts.update(uses)
                self._answers.update(answers)
                self._replays.update(replays)


def _columns(counts: Counter[Any]) -> list[list[Any]]:
    return [list(column) for column in zip(*((*counted, number) for counted, number in counts.items()), strict=True)]


uses = VersionUses()
