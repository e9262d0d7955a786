"""Deletes expired rows beside the traffic, in short transactions that skip locked rows."""

import time
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from django.conf import settings
from django.db.models import Model, QuerySet
from django.utils import timezone
from oauth2_provider.models import get_grant_model

from accounts.models import LoginSession, Session, past_access_tokens, past_refresh_tokens
from config.api.limits import counters
from config.erasure import eraser
from config.management.command import ServiceCommand, direct_connection
from config.models import (
    AuditEvent,
    Erasure,
    IdempotencyRecord,
    OutboxEntry,
    ReadPosition,
    VersionUse,
    WebhookDelivery,
)
from config.postgresql import events, row_counts, transactions

BATCH_SIZE = 1_000
# A request in progress may have just validated its token, and the clock of another machine may be slow.
MARGIN = timedelta(minutes=1)
SECONDS_BETWEEN_LOOKS = 0.1


class Command(ServiceCommand):
    help = (
        "Deletes expired rows: sessions, codes and tokens that can no longer be used, rate limit counters of past "
        "minutes, idempotency keys older than IDEMPOTENCY_RETENTION_DAYS, weeks of events older than 90 days, audit "
        "events and version statistics older than AUDIT_RETENTION_DAYS. Also erases what removed users have left, and "
        "compacts the row counts of lists. Prints the number of rows of each kind. Run it daily; the service may run "
        "meanwhile, and an interrupted run can be repeated."
    )
    example = "manage.py purge --dry-run"
    interrupted = "Interrupted: deleted rows stay deleted. Run the command again for the rest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only count the rows, delete nothing")

    def handle(self, *, dry_run: bool, **options: object) -> None:
        # Each query for expired rows scans a whole table. The deletion of a batch is short by itself.
        with direct_connection():
            for name, rows in _get_expired_rows(timezone.now() - MARGIN).items():
                self.stdout.write(f"{name}: {rows.count() if dry_run else _purge(rows)}")
            if settings.EVENTS:
                self.stdout.write(f"events: {events.purge(timezone.now(), dry_run=dry_run)}")
            self._erase(dry_run=dry_run)
            if not dry_run:
                row_counts.compact()

    def _erase(self, *, dry_run: bool) -> None:
        """Erases what removed users have left, or waits until the running service has."""
        removed = Erasure.objects.count()
        while not dry_run and Erasure.objects.exists():
            eraser.erase()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self.stdout.write(f"removed users: {removed}")


def _get_expired_rows(now: datetime) -> dict[str, QuerySet[Model]]:
    """The rows to delete, by their name in the report."""
    kept = timedelta(days=settings.AUDIT_RETENTION_DAYS)
    return {
        "login sessions": LoginSession.objects.filter(expires_at__lte=now),
        "browser sessions": Session.objects.filter(expire_date__lte=now),
        "OAuth codes": get_grant_model().objects.filter(expires__lte=now),
        "OAuth refresh tokens": past_refresh_tokens(now),
        "OAuth access tokens": past_access_tokens(now),
        "counters": counters.expired(now),
        "idempotency keys": IdempotencyRecord.objects.expired(now),
        "audit events": AuditEvent.objects.filter(at__lte=now - kept),
        "outbox entries": OutboxEntry.objects.expired(now),
        "webhook deliveries": WebhookDelivery.objects.expired(now),
        "read positions": ReadPosition.objects.filter(waited_at__lt=now - timedelta(days=1)),
        "uses of versions": VersionUse.objects.filter(day__lt=now - kept),
    }


def _purge(rows: QuerySet[Model]) -> int:
    """Deletes the rows in batches. Returns how many."""
    # A server-side cursor WITH HOLD: one scan of the table, and no transaction that stays open meanwhile.
    expired_keys = rows.order_by().values_list("pk", flat=True).iterator(chunk_size=BATCH_SIZE)
    deleted = 0
    while keys := list(islice(expired_keys, BATCH_SIZE)):
        deleted += transactions.run_in_transaction(partial(_purge_batch, rows, keys))
    return deleted


def _purge_batch(rows: QuerySet[Model], keys: Sequence[object]) -> int:
    # Evaluated again under the lock: a row may have been renewed meanwhile. Rows that a request or another purge has
    # locked are left to the next purge.
    locked = rows.order_by().filter(pk__in=keys).select_for_update(of=("self",), skip_locked=True)
    locked_keys = list(locked.values_list("pk", flat=True))
    rows.model._base_manager.filter(pk__in=locked_keys).delete()
    return len(locked_keys)
