"""The columns every resource has: a 64-bit id, the database's clock, and a row version."""

from __future__ import annotations

from datetime import timedelta

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Now


class Resource(models.Model):
    """A row that the API serves on its own.

    `row_version` counts the writes to the row, whichever door they came through: a trigger keeps it, so that the
    admin, a bulk update and plain SQL cannot forget to.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    row_version = models.BigIntegerField(db_default=1, editable=False)

    class Meta:
        abstract = True
        ordering = ["id"]
        triggers = [
            pgtrigger.Trigger(
                name="count_row_version",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                func="NEW.row_version = OLD.row_version + 1; RETURN NEW;",
            )
        ]


class ChangingResource(Resource):
    """A resource that the API can change, and that tells when."""

    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta(Resource.Meta):
        abstract = True


def keep_updated_at(*columns: str) -> pgtrigger.Trigger:
    """The trigger that sets `updated_at` when one of `columns` is written: those that a representation shows."""
    return pgtrigger.Trigger(
        name="keep_updated_at",
        when=pgtrigger.Before,
        operation=pgtrigger.UpdateOf(*columns),
        func="NEW.updated_at = statement_timestamp(); RETURN NEW;",
    )


class Counter(models.Model):
    """How often something happened in the present window: failed log-ins, and the requests that quotas count.

    The table is UNLOGGED: a crash of the database forgets the last minute, and nothing waits for the disk.
    """

    key = models.TextField(primary_key=True, db_collation="C")
    window = models.DateTimeField()
    count = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.key}: {self.count}"


class AuditEvent(models.Model):
    """Something that happened to a credential: what, to whom, from where, and never the secret itself."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    event = models.CharField(max_length=40)
    # CASCADE: what is told of a user goes when the user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=128, default="", blank=True)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["user", "-id"], name="audit_events_user")]

    def __str__(self) -> str:
        return f"{self.event} at {self.at}"


LONGEST_KEY = 255


class IdempotencyRecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    def past_retention(self) -> IdempotencyRecordQuerySet:
        """The records that may go. What is still running has none yet."""
        return self.filter(created_at__lt=Now() - timedelta(days=settings.IDEMPOTENCY_RETENTION_DAYS))


class IdempotencyRecord(models.Model):
    """The answer that a key got, written in the transaction of its effect: there are both, or neither.

    `operation` is the method and the path without prefix. `fingerprint` is a keyed digest of what was asked, `body`
    the JSON that was answered.
    """

    id = models.BigAutoField(primary_key=True)
    # CASCADE: stored answers go when the user who got them is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False)
    operation = models.CharField(max_length=100, db_collation="C")
    key = models.CharField(max_length=LONGEST_KEY, db_collation="C")
    fingerprint = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    location = models.TextField()
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    replays = models.PositiveIntegerField(default=0)
    replayed_at = models.DateTimeField(null=True)

    objects = IdempotencyRecordQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The key comes first, so that an administrator finds it without knowing the rest.
            models.UniqueConstraint(fields=["key", "user", "operation"], name="idempotency_records_unique"),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="idempotency_records_created_at"),
            # For the removal of a user.
            models.Index(fields=["user"], name="idempotency_records_user"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} by {self.user_id} with key {self.key}"

    def count_replay(self) -> None:
        type(self).objects.filter(pk=self.pk).update(replays=F("replays") + 1, replayed_at=Now())
