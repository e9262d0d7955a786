"""Removes what is past keeping, beside the traffic: in short transactions that wait for nobody."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import LoginSession
from accounts.oauth import retention
from config.api.limits import counters
from config.management.command import ServiceCommand, no_statement_timeout
from config.management.progress import progress
from config.models.resource import AuditEvent, IdempotencyRecord, VersionUse
from config.postgresql import row_counts, transactions
from config.site import sessions

ROWS_AT_ONCE = 1_000
# A request that is under way may have found its token good a moment ago, and another machine's clock may be late.
MARGIN = timedelta(minutes=1)


def _past(now: datetime) -> dict[str, QuerySet[Any]]:
    """Every kind of row that comes to an end, by the name it is counted under; its own app says which are past it."""
    return {
        "login sessions": LoginSession.objects.past(now),
        "browser sessions": sessions.past(now),
        "OAuth codes": retention.past_codes(now),
        "OAuth refresh tokens": retention.past_refresh_tokens(now),
        "OAuth access tokens": retention.past_access_tokens(now),
        "counters": counters.past(now),
        "idempotency keys": IdempotencyRecord.objects.past(now),
        "audit events": AuditEvent.objects.past(now),
        "uses of versions": VersionUse.objects.past(now),
    }


class Command(ServiceCommand):
    help = (
        "Removes what is past keeping: sessions, codes and tokens that can never be used again, counters of past "
        "minutes, idempotency keys older than IDEMPOTENCY_RETENTION_DAYS, audit events and uses of versions older than "
        "AUDIT_RETENTION_DAYS. Also folds the counts behind the totals of lists. It runs beside the service and may be "
        "interrupted; run it daily. Prints a line for each kind with the number of rows."
    )
    example = "manage.py purge --dry-run"
    interrupted = "Interrupted: what was removed is gone; run it again for the rest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count only, remove nothing")

    def handle(self, *, dry_run: bool, **options: Any) -> None:
        # Finding what is past keeping is one look at each table. Batches are short by themselves.
        with no_statement_timeout():
            for name, rows in _past(timezone.now() - MARGIN).items():
                count = rows.count()
                self.stdout.write(f"{name}: {count if dry_run else _purge(name, rows, count)}")
            if not dry_run:
                row_counts.fold()


def _purge(name: str, rows: QuerySet[Any], count: int) -> int:
    """Removes the rows, batch by batch. Returns how many."""
    # A cursor in the server: the table is looked through once, and no transaction stays open meanwhile.
    found = rows.order_by().values_list("pk", flat=True).iterator(chunk_size=ROWS_AT_ONCE)
    purged = 0
    with progress(name, count) as advance:
        while keys := list(islice(found, ROWS_AT_ONCE)):
            purged += _purge_batch(rows, keys)
            advance(len(keys))
    return purged


def _purge_batch(rows: QuerySet[Any], keys: Sequence[object]) -> int:
    def write() -> int:
        # Asked once more under the lock: a row may live again since it was found. What somebody else holds, a request
        # or another purge, is left to the next purge.
        present = rows.order_by().filter(pk__in=keys).select_for_update(of=("self",), skip_locked=True)
        mine = list(present.values_list("pk", flat=True))
        rows.model._base_manager.filter(pk__in=mine).delete()
        return len(mine)

    return transactions.run(write)
