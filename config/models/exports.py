"""Exports of the admin that are made in the background, and kept for a day (config.admin.saved_exports)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.apps import apps
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from config.models.erasure import VisibleManager

# A copy of many rows is not kept for longer than somebody needs to fetch it.
KEPT_FOR = timedelta(days=1)


class SavedExportQuerySet(models.QuerySet["SavedExport"]):
    def expired(self, now: datetime) -> SavedExportQuerySet:
        return self.filter(requested_at__lte=now - KEPT_FOR)


class SavedExport(models.Model):
    """An export of a change list, from its request on.

    Attributes:
        user: who asked for it, and alone may fetch it.
        what: the label of the model, such as `users.user`.
        query: the query string of the change list, with its filters and its search.
        total: how many rows there were when it was asked for; None where they are not counted.
        rows: how many are in its parts.
        last_id: of the last of them.
        failure: why it was given up; empty otherwise.
        claimed_until: until then a process is at it.
    """

    id = models.BigAutoField(primary_key=True)
    # CASCADE: nobody else may fetch it.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    what = models.CharField(max_length=100)
    query = models.TextField(blank=True)
    format = models.CharField(max_length=10)
    total = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(default=0, db_default=0)
    last_id = models.BigIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(null=True)
    failure = models.CharField(max_length=200, blank=True, default="", db_default="")
    claimed_until = models.DateTimeField(db_default=Now())

    objects = VisibleManager.from_queryset(SavedExportQuerySet)()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["id"], condition=Q(finished_at=None), name="saved_exports_unfinished")]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.name}"

    @property
    def name(self) -> str:
        """The plural name of what is exported."""
        return str(apps.get_model(self.what)._meta.verbose_name_plural)


class SavedExportPart(models.Model):
    """Some rows of an export.

    Attributes:
        number: of the part, from 0.
        ids: of its rows.
        content: the rows as a member of a gzip file.
    """

    id = models.BigAutoField(primary_key=True)
    export = models.ForeignKey(SavedExport, on_delete=models.CASCADE, related_name="parts", db_index=False)
    number = models.IntegerField()
    ids = ArrayField(models.BigIntegerField())
    content = models.BinaryField()

    objects = VisibleManager()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["export", "number"], name="saved_export_parts_once")]

    def __str__(self) -> str:
        return f"part {self.number} of export {self.export_id}"
