"""Sends what is due in the outbox.

An entry is locked while it is sent. A process that is killed loses its lock with its connection, and another one sends
the entry. So an entry is sent twice only by a process that dies between the answer of the other side and its COMMIT.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from config.models import OutboxEntry, OutboxStatus

logger = logging.getLogger(__name__)

FIRST_RETRY = timedelta(seconds=10)
MAX_RETRY = timedelta(hours=1)


class Dropped(Exception):  # noqa: N818 - no error
    """Raised by a sender if there is no longer anything to send."""


class Refused(Exception):  # noqa: N818 - an outcome, reported by the other side
    """Raised by a sender where another attempt would be refused, too."""


def deliver(is_stopped: Callable[[], bool] = lambda: False) -> int:
    """Sends what is due, one entry after the other. Several processes share the entries.

    Args:
        is_stopped: asked before each entry, whether to leave the rest to others.

    Returns:
        How many entries were tried.
    """
    tried = 0
    while not is_stopped() and _deliver_next():
        tried += 1
    return tried


def _deliver_next() -> bool:
    """Tries the entry that is due first, of those that no other process is at. False where there is none."""
    with transaction.atomic(durable=True):
        due = OutboxEntry.objects.due(settings.OUTBOX_SENDERS.keys())
        entry = due.select_for_update(of=("self",), skip_locked=True, no_key=True).first()
        if entry is None:
            return False
        entry.attempts += 1
        entry.status, entry.error = _try(entry)
        if entry.status == OutboxStatus.PENDING:
            logger.warning("Outbox entry %s was not sent: %s", entry.pk, entry.error)
            entry.due_at = timezone.now() + min(FIRST_RETRY * 2 ** min(entry.attempts - 1, 20), MAX_RETRY)
        entry.save(update_fields=["attempts", "status", "error", "due_at"])
    return True


def _try(entry: OutboxEntry) -> tuple[OutboxStatus, str]:
    """The outcome of an attempt, and why. The text of an error may contain an address, and is left out."""
    try:
        # A savepoint: a database error affects this entry only.
        with transaction.atomic():
            import_string(settings.OUTBOX_SENDERS[entry.kind])(entry)
    except Dropped as reason:
        return OutboxStatus.DROPPED, str(reason)
    except Refused as reason:
        return OutboxStatus.FAILED, str(reason)
    except Exception as error:  # noqa: BLE001 - whatever a sender meets
        code = getattr(error, "smtp_code", "")
        return OutboxStatus.PENDING, f"{type(error).__name__} {code}".strip()
    return OutboxStatus.SENT, ""
