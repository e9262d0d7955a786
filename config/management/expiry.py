"""The rows that have expired, of all apps."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Model, QuerySet

from accounts.models import LoginSession
from accounts.oauth import retention
from accounts.sessions import get_expired_sessions
from config.api.limits import counters
from config.models import AuditEvent, IdempotencyRecord, OutboxEntry, ReadPosition, VersionUse, WebhookDelivery


def get_expired_rows(now: datetime) -> dict[str, QuerySet[Model]]:
    """What `purge` deletes, by the name in its report; each app defines which of its rows expire."""
    kept = timedelta(days=settings.AUDIT_RETENTION_DAYS)
    return {
        "login sessions": LoginSession.objects.expired(now),
        "browser sessions": get_expired_sessions(now),
        "OAuth codes": retention.past_codes(now),
        "OAuth refresh tokens": retention.past_refresh_tokens(now),
        "OAuth access tokens": retention.past_access_tokens(now),
        "counters": counters.expired(now),
        "idempotency keys": IdempotencyRecord.objects.expired(now),
        "audit events": AuditEvent.objects.filter(at__lte=now - kept),
        "outbox entries": OutboxEntry.objects.expired(now),
        "webhook deliveries": WebhookDelivery.objects.expired(now),
        "read positions": ReadPosition.objects.filter(waited_at__lt=now - timedelta(days=1)),
        "uses of versions": VersionUse.objects.filter(day__lt=now - kept),
    }
