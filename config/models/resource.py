"""The columns every resource has: a 64-bit id, the database's clock, and a row version."""

import pgtrigger
from django.db import models
from django.db.models.functions import Now


def count_row_version(*columns: str) -> pgtrigger.Trigger:
    """The trigger that counts `row_version` up when a row is written, or one of `columns` if some are named."""
    return pgtrigger.Trigger(
        name="count_row_version",
        when=pgtrigger.Before,
        operation=pgtrigger.UpdateOf(*columns) if columns else pgtrigger.Update,
        func="NEW.row_version = OLD.row_version + 1; RETURN NEW;",
    )


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
        triggers = [count_row_version()]


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
