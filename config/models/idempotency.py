"""The stored answers of idempotency keys."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from config.models.erasure import Erasure, VisibleManager

MAX_KEY_LENGTH = 255


class IdempotencyRecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    def expired(self, now: datetime) -> IdempotencyRecordQuerySet:
        """The records that may go. What is still running has none yet."""
        return self.filter(created_at__lte=now - timedelta(days=settings.IDEMPOTENCY_RETENTION_DAYS))

    def showing(self, user_id: int) -> IdempotencyRecordQuerySet:
        """The records of answers with many rows of which one is a user's."""
        return self.filter(owner_ids__contains=[user_id])


class IdempotencyRecordManager(VisibleManager.from_queryset(IdempotencyRecordQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> IdempotencyRecordQuerySet:
        removed = ArraySubquery(Erasure.objects.values("user_id"))
        return super().get_queryset().filter(~Q(owner_ids__overlap=removed))


class IdempotencyRecord(models.Model):
    """The answer that a key got, written in the transaction of its effect: there are both, or neither.

    `operation` is the method and the path without prefix. `fingerprint` is a keyed digest of what was asked, `body`
    the JSON that was answered.
    """

    id = models.BigAutoField(primary_key=True)
    # CASCADE: stored answers go when the user who got them is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False)
    # CASCADE: so do those that show others a row of the user's. None for one's own.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="answers_to_others", db_index=False
    )
    archived = ()
    # The same, of an answer that shows rows of many: a removal finds it by an index, and config.erasure takes it away.
    owner_ids = ArrayField(models.BigIntegerField(), null=True)
    operation = models.CharField(max_length=100, db_collation="C")
    key = models.CharField(max_length=MAX_KEY_LENGTH, db_collation="C")
    fingerprint = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    location = models.TextField()
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = IdempotencyRecordManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The key comes first, so that an administrator finds it without knowing the rest.
            models.UniqueConstraint(fields=["key", "user", "operation"], name="idempotency_records_unique"),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="idempotency_records_created_at"),
            # For the removal of a user, and for the latest of a user in the admin.
            models.Index(fields=["user", "id"], name="idempotency_records_of_user"),
            models.Index(fields=["owner"], name="idempotency_records_owner", condition=~Q(owner=None)),
            GinIndex(fields=["owner_ids"], name="idempotency_records_owners", condition=~Q(owner_ids=None)),
        ]

    def __str__(self) -> str:
        return f"{self.operation} by {self.user_id} with key {self.key}"

    def shows_removed_user(self) -> bool:
        """Whether the answer shows a row of a removed user, and is still to be erased."""
        owners = self.owner_ids or ([] if self.owner_id is None else [self.owner_id])
        return bool(owners) and Erasure.objects.filter(pk__in=owners).exists()
