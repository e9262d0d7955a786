"""Who still calls which version, how it answers, and which credentials are used: noted in each process, and written
down every few seconds.

A write for each request would cost more than many a request does. A process that is killed takes its last seconds
with it.
"""

import logging
import time
from collections import Counter, defaultdict
from functools import cache
from threading import Lock
from typing import Any

import prometheus_client
from django.contrib.auth import get_user_model
from django.db import Error, connection, transaction
from django.db.models import Model

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
    """The counts of a process that are not written down yet, by the statement that adds them to a table.

    Uses are counted by version, user, kind and name of the credential, answers by version and status. Rows of
    credentials are noted by their model, which writes them down (`write_uses`).
    """

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
        self._used: defaultdict[Any, set[Any]] = defaultdict(set)
        self._lock = Lock()
        self._next_write = 0.0

    def count(self, version: Version, principal: Principal | None, status: int) -> None:
        """Counts a response of a version by user and credential, or without a user if no credential was valid."""
        user, kind, name = (None, "", "")
        if principal is not None:
            user, kind, name = principal.user.id, principal.kind, principal.credential
        _requests(version.number, kind or "none").inc()
        with self._lock:
            self._counts[_WRITE][version.number, user, kind, name] += 1
            self._counts[_WRITE_ANSWERS][version.number, status] += 1

    def note(self, model: type[Model], key: object) -> None:
        """Notes that the row of a credential was used."""
        with self._lock:
            self._used[model].add(key)

    def write_when_due(self) -> None:
        """Writes the counts down unless that was done a few seconds ago."""
        now = time.monotonic()
        if now >= self._next_write:
            self._next_write = now + SECONDS_BETWEEN_WRITES
            self.write()

    def write(self) -> None:
        """Adds the counts to the tables, outside of any request's transaction.

        While the database is unavailable they stay in memory until the next time.
        """
        with self._lock:
            seen, self._counts = self._counts, defaultdict(Counter)
            used, self._used = self._used, defaultdict(set)
        if not seen and not used:
            return
        try:
            # All or nothing, or what stays in memory would be counted twice.
            with transaction.atomic(), connection.cursor() as cursor:
                # Requests wait for this, and nothing that a crash may lose here is worth a wait for the disk.
                cursor.execute("SET LOCAL synchronous_commit = off")
                for sql, counts in seen.items():
                    columns = zip(*((*counted, number) for counted, number in counts.items()), strict=True)
                    cursor.execute(sql.format(users=get_user_model()._meta.db_table), list(map(list, columns)))
                for model, keys in used.items():
                    model.write_uses(keys)
        except Error as error:
            logger.warning("The use of versions was not written down: %s", error)
            with self._lock:
                for sql, counts in seen.items():
                    self._counts[sql].update(counts)
                for model, keys in used.items():
                    self._used[model] |= keys


uses = VersionUses()
