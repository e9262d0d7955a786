"""The columns every resource has: a 64-bit id, the database's clock, and a row version."""

import pgtrigger
from django.conf import settings
from django.db import models
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


class RowCount(models.Model):
    """How many rows of a table lie in a block of ids, as a share of one slot; kept by triggers (config.counting).

    Attributes:
        bits: the block holds the ids that are `block` when so many of their lowest bits are cut off.
        part: the columns by which the counts are kept apart, with their values.
    """

    pk = models.CompositePrimaryKey("relation", "bits", "block", "part", "slot")
    relation = models.CharField(max_length=63, db_collation="C")
    bits = models.SmallIntegerField()
    block = models.BigIntegerField()
    part = models.JSONField()
    slot = models.IntegerField()
    rows = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.rows} of {self.relation} in block {self.block} of {self.bits} bits"


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
