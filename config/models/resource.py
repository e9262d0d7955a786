"""The columns every resource has: a 64-bit id, the database's clock, and a row version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

import pgtrigger
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models import F, Q
from django.db.models.base import ModelState
from django.db.models.expressions import DatabaseDefault
from django.db.models.functions import Now

from config.fastpath.inserts import addition_to, answered_addition_to, change_of, insert_of
from config.fastpath.postgresql.prepared_statements import Statement

Result = TypeVar("Result")


class Row(models.Model):
    """A row that requests read and write."""

    @classmethod
    def from_db(cls, db: str | None, field_names: Any, values: Any, **options: Any) -> Self:
        """Django's way, but around `__init__`, which asks of each field whether its value was given."""
        row = cls.__new__(cls)
        state = ModelState()
        state.db, state.adding = db, False
        row.__dict__ = columns = dict(zip(field_names, values, strict=True))
        columns["_state"] = state
        return row

    @classmethod
    def add(cls, **values: Any) -> Self:
        """A new row, as `objects.create()` adds it, by a kept statement and around `save()`.

        Django's way is taken where that would do more. What a model does in `__init__` is left out, as in `from_db`.

        Args:
            values: by names of columns, and no expressions.
        """
        addition = addition_to(cls, frozenset(values))
        if addition is None:
            added: Self = cls._default_manager.create(**values)
            return added
        row = cls._new(values, addition.defaults)
        vars(row).update(zip(addition.returned, addition.run(row), strict=True))
        row._state.adding = False
        return row

    @classmethod
    def add_answered(
        cls,
        values: Mapping[str, Any],
        answer: Callable[[Self], Result],
        within: Callable[[Result, Self], Statement],
        unless: Statement | None = None,
    ) -> Result | None:
        """Adds a row by one statement, once what tells of it is made. What fails before that leaves no row.

        It is a transaction by itself, and waited for together with what other jobs ask.

        Args:
            values: by names of columns, and no expressions.
            answer: makes of the row, as it will be, what tells of it.
            within: of what was made, and the row, the beginning of the statement, as `AnsweredAddition.run` takes it.
            unless: selects a row where none shall be added.

        Returns:
            what was made; None where no row was added: there is something of `unless`, or the statement's condition
            did not hold, or Django's own way would do more.
        """
        addition = answered_addition_to(cls, frozenset(values))
        begun = addition and addition.begin(unless)
        if not (addition and begun):
            return None
        row = cls._new(values, addition.defaults)
        vars(row).update(zip(addition.names, begun, strict=True))
        made = answer(row)
        if not addition.run(row, within(made, row)):
            return None
        row._state.adding = False
        return made

    @classmethod
    def _new(cls, values: Mapping[str, Any], defaults: Sequence[Any]) -> Self:
        """A row that is still to be added, around `__init__`."""
        row = cls.__new__(cls)
        kept = vars(row)
        kept.update(values, _state=ModelState())
        for field in defaults:
            kept[field.attname] = field.get_default()
        row._state.db = DEFAULT_DB_ALIAS
        return row

    def change(self, **values: Any) -> None:
        """Writes these columns of a row that is there, and no other, and reads what triggers made of it.

        As `save(update_fields=…)` and `refresh_from_db()` do it, in one statement where these would do no more.

        Args:
            values: by names of columns, and no expressions.
        """
        for name, value in values.items():
            setattr(self, name, value)
        change = change_of(type(self), frozenset(values))
        if change is None:
            self.save(update_fields=list(values))
            self.refresh_from_db()
        else:
            vars(self).update(zip(change.returned, change.run(self), strict=True))

    def _do_insert(self, manager: Any, using: Any, fields: Any, returning_fields: Any, raw: bool) -> Any:
        """Django's, by a kept statement where no column is given as SQL."""
        given = {field.attname: getattr(self, field.attname) for field in fields}
        given = {name: value for name, value in given.items() if not isinstance(value, DatabaseDefault)}
        insert = insert_of(manager.model, frozenset(given))
        if raw or insert is None or any(hasattr(value, "resolve_expression") for value in given.values()):
            return super()._do_insert(manager, using, fields, returning_fields, raw)  # type: ignore[misc]  # the stubs leave it out
        return [insert.run(self, using)]

    class Meta:
        abstract = True


class Resource(Row):
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
    """How many rows of a table lie in a block of ids, as a share of one slot; kept by triggers (config.postgresql).

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


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def past(self, now: datetime) -> AuditEventQuerySet:
        return self.filter(at__lte=now - timedelta(days=settings.AUDIT_RETENTION_DAYS))


class AuditEvent(models.Model):
    """What happened to a credential, or rows that were taken away: whose, from where, and never the secret itself."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    event = models.CharField(max_length=40)
    # CASCADE: what is told of a user goes when the user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=128, default="", blank=True)
    facts = models.JSONField(default=dict)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["user", "-id"], name="audit_events_user"),
            models.Index(fields=["at"], name="audit_events_at"),
            models.Index(fields=["event", "at"], name="audit_events_event"),
            models.Index(fields=["request_id"], name="audit_events_request", condition=~Q(request_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.event} at {self.at}"


class VersionUseQuerySet(models.QuerySet["VersionUse"]):
    def past(self, now: datetime) -> VersionUseQuerySet:
        return self.filter(day__lt=now - timedelta(days=settings.AUDIT_RETENTION_DAYS))


class VersionUse(models.Model):
    """How many requests a credential made to a version of the API on a day (UTC).

    Attributes:
        user: None for requests without a good credential.
        kind: of the credential, as a Principal has it.
        credential: which one of its kind, as far as it has a name: the prefix of an API key, a client id.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    version = models.IntegerField()
    # CASCADE: what is told of a user goes when the user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    kind = models.TextField(db_collation="C", blank=True)
    credential = models.TextField(db_collation="C", blank=True)
    count = models.BigIntegerField()

    objects = VersionUseQuerySet.as_manager()

    class Meta:
        ordering = ["-day", "-id"]
        verbose_name = "use of a version"
        verbose_name_plural = "use of versions"
        indexes = [
            models.Index(fields=["-day", "-id"], name="version_uses_day"),
            # For the last who use a version that is to end.
            models.Index(fields=["version", "-day", "-id"], name="version_uses_version"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "day", "version", "kind", "credential"],
                nulls_distinct=False,
                name="version_uses_once",
            )
        ]

    def __str__(self) -> str:
        return f"version {self.version} on {self.day}: {self.count}"


class AnswerCount(models.Model):
    """How many answers a version of the API gave on a day (UTC), by their status.

    A day has a few dozen rows, which tell nothing of anybody: they are kept.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    version = models.IntegerField()
    status = models.PositiveSmallIntegerField()
    count = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "version", "status"], name="answer_counts_once")]

    def __str__(self) -> str:
        return f"{self.count} answers {self.status} of version {self.version} on {self.day}"


class DayFigure(models.Model):
    """A figure of a day (UTC) that is over, so that nobody counts its rows again (config.admin.dashboard)."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=40, db_collation="C")
    day = models.DateField()
    value = models.DecimalField(max_digits=30, decimal_places=2)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "day"], name="day_figures_once")]

    def __str__(self) -> str:
        return f"{self.name} of {self.day}: {self.value}"


LONGEST_KEY = 255


class IdempotencyRecordQuerySet(models.QuerySet["IdempotencyRecord"]):
    def past(self, now: datetime) -> IdempotencyRecordQuerySet:
        """The records that may go. What is still running has none yet."""
        return self.filter(created_at__lte=now - timedelta(days=settings.IDEMPOTENCY_RETENTION_DAYS))


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
            models.Index(fields=["owner"], name="idempotency_records_owner", condition=~Q(owner=None)),
        ]

    def __str__(self) -> str:
        return f"{self.operation} by {self.user_id} with key {self.key}"

    def count_replay(self) -> None:
        type(self).objects.filter(pk=self.pk).update(replays=F("replays") + 1, replayed_at=Now())
