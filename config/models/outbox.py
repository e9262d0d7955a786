"""Messages to send (config.outbox)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from config.models.erasure import VisibleManager

# How long an operator can see the outcome of an entry.
RETENTION = timedelta(days=7)


class OutboxStatus(models.TextChoices):
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"


class OutboxEntryQuerySet(models.QuerySet["OutboxEntry"]):
    def due(self, kinds: Collection[str]) -> OutboxEntryQuerySet:
        """The entries of some kinds that are to be sent now, in the order in which they are due."""
        pending = self.filter(status=OutboxStatus.PENDING, due_at__lte=Now(), kind__in=kinds)
        return pending.order_by("due_at")

    def expired(self, now: datetime) -> OutboxEntryQuerySet:
        return self.exclude(status=OutboxStatus.PENDING).filter(created_at__lte=now - RETENTION)


class OutboxEntry(models.Model):
    """Something to be sent, written in the transaction of what causes it: there are both, or neither.

    Attributes:
        kind: which of OUTBOX_SENDERS sends it.
        user: whom it concerns; None for what is sent to nobody.
        parameters: what else its sender needs. Neither a secret nor an address, which the user may change or remove.
        due_at: when it is sent, or tried again.
        error: why the last attempt failed, without a word of what was sent.
    """

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=40)
    # CASCADE: what is to be sent to a user goes when the user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    archived = ("id", "kind", "status", "created_at")
    parameters = models.JSONField(default=dict)
    status = models.CharField(max_length=7, choices=OutboxStatus, default=OutboxStatus.PENDING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=100, default="", blank=True)

    objects = VisibleManager.from_queryset(OutboxEntryQuerySet)()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "outbox entries"
        indexes = [
            models.Index(fields=["status", "due_at"], name="outbox_entries_due"),
            models.Index(fields=["user", "-id"], name="outbox_entries_user"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.created_at}"
