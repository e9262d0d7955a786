"""Who is told of events by requests, and what became of each (config.events.webhooks)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from config.models.erasure import VisibleManager
from config.models.resource import ChangingResource, count_row_version, keep_updated_at

# How long an owner can see the outcome of a delivery.
RETENTION = timedelta(days=30)
PING = "webhook.ping"
# The outcomes of attempts, for metrics: a response other than success by the first digit of its status.
OUTCOMES = ("delivered", "no_answer", "1xx", "3xx", "4xx", "5xx")
# Columns that a representation shows: the deliverer's own columns do not make a new version.
_SHOWN = ("url", "types", "description", "status", "disabled_reason")


class WebhookStatus(models.TextChoices):
    ACTIVE = "active"
    DISABLED = "disabled"


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, principal: Any) -> WebhookQuerySet:
        return self if principal.user.is_administrator else self.filter(user_id=principal.user.pk)

    def disable(self, reason: str) -> int:
        """Has nothing more sent to those that are active, and tells their owners why. Returns how many there were."""
        active = self.filter(status=WebhookStatus.ACTIVE)
        return active.update(status=WebhookStatus.DISABLED, disabled_reason=reason)


class Webhook(ChangingResource):
    """Where events are sent for a user, with the rights of the request that made it, and those of the user by now.

    Attributes:
        types: of the events that are sent.
        disabled_reason: why the service disabled it; empty where its owner did.
        scopes: of the credential that made it.
        version: of the API, of what is sent.
        secret: sealed, as is `previous_secret`, which also signs until `previous_until`.
        failing_since: the first failure after the last success.
        paused_until: before when its endpoint has asked for nothing.
        replay_position: with `replay_id`, up to where the events are sent again; None where none are.
    """

    # CASCADE: webhooks go when their user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks", db_index=False
    )
    archived = ("id", "url", "types", "description", "status", "disabled_reason", "created_at", "updated_at")
    url = models.CharField(max_length=2_000, db_collation="C")
    types = ArrayField(models.TextField())
    description = models.CharField(max_length=200, default="", blank=True)
    status = models.CharField(max_length=8, choices=WebhookStatus, default=WebhookStatus.ACTIVE)
    disabled_reason = models.CharField(max_length=200, default="", blank=True, editable=False)
    scopes = ArrayField(models.TextField(), editable=False)
    version = models.SmallIntegerField(editable=False)
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False)
    replay_position = models.BigIntegerField(null=True, editable=False)
    replay_id = models.BigIntegerField(null=True, editable=False)

    # The secret as its owner gets it, on the row that was just given one and nowhere else.
    new_secret: str

    objects = VisibleManager.from_queryset(WebhookQuerySet)()

    class Meta(ChangingResource.Meta):
        indexes = [
            models.Index(fields=["user", "id"], name="webhooks_user"),
            models.Index(fields=["id"], name="webhooks_replays", condition=~Q(replay_position=None)),
        ]
        triggers = [count_row_version(*_SHOWN), keep_updated_at(*_SHOWN)]

    def __str__(self) -> str:
        # The admin's log keeps this text: it must not quote a user's text.
        return f"webhook {self.pk}"


class DeliveryStatus(models.TextChoices):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DeliveryQuerySet(models.QuerySet["WebhookDelivery"]):
    def visible_to(self, principal: Any) -> DeliveryQuerySet:
        return self if principal.user.is_administrator else self.filter(webhook__user_id=principal.user.pk)

    def expired(self, now: datetime) -> DeliveryQuerySet:
        return self.exclude(status=DeliveryStatus.PENDING).filter(created_at__lte=now - RETENTION)

    def showing(self, user_ids: Collection[int]) -> DeliveryQuerySet:
        """Those whose answers may name one of the users whom their events were about."""
        return self.filter(~Q(attempts=[]), subject_id__in=user_ids)


class WebhookDelivery(models.Model):
    """An event that is sent to a webhook, or was. What is sent is no part of it: it is built at each attempt.

    Attributes:
        event_id: with `position`, the event; None of a ping.
        subject_id: the user whom the event is about.
        due_at: when it is sent, or tried again; while it `is_leased`, when another process may take it.
        attempts: the outcome of each, as the API shows it.
    """

    id = models.BigAutoField(primary_key=True)
    # CASCADE: deliveries go with their webhook.
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    event_id = models.BigIntegerField(null=True)
    position = models.BigIntegerField(null=True)
    subject_id = models.BigIntegerField(null=True)
    type = models.CharField(max_length=20)
    status = models.CharField(max_length=9, choices=DeliveryStatus, default=DeliveryStatus.PENDING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    is_leased = models.BooleanField(db_default=False, editable=False)
    attempts = models.JSONField(default=list, editable=False)

    objects = VisibleManager.from_queryset(DeliveryQuerySet)()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(fields=["webhook", "id"], name="deliveries_webhook"),
            models.Index(fields=["webhook", "status", "id"], name="deliveries_status"),
            models.Index(fields=["webhook", "due_at", "id"], name="deliveries_due", condition=Q(status="pending")),
            # Few rows: what is just being sent.
            models.Index(fields=["webhook"], name="deliveries_leased", condition=Q(is_leased=True)),
            models.Index(fields=["subject_id"], name="deliveries_subject", condition=~Q(attempts=[])),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"

    def retry(self) -> None:
        """Makes it due again, at once; the row must be locked. One that is just being sent is left alone."""
        if not self.is_leased:
            self.status, self.due_at = DeliveryStatus.PENDING, timezone.now()
            self.save(update_fields=["status", "due_at"])


class WebhookProgress(models.Model):
    """Up to which event deliveries were written. There is one, from the first webhook on.

    Attributes:
        epoch: in which the position is one (EventEpoch).
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    epoch = models.UUIDField()
    position = models.BigIntegerField()
    event_id = models.BigIntegerField()

    def __str__(self) -> str:
        return f"event {self.event_id}"


class WebhookOutcome(models.Model):
    """How many attempts had an outcome, for the metrics of all processes."""

    label = models.CharField(max_length=10, primary_key=True, db_collation="C")
    count = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.count} {self.label}"
