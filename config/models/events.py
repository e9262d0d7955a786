"""What happened to users and their resources (config.postgresql.events)."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan
from django.db.models.functions import Now

from config.postgresql.events import HORIZON

# What may happen to a resource, by its name.
ACTIONS = {
    "user": ("created", "updated", "removed"),
    "order": ("created",),
    "payment": ("created",),
    "post": ("created", "updated", "removed"),
    "comment": ("created", "updated", "removed"),
}
TYPES = tuple(f"{resource}.{action}" for resource, actions in ACTIONS.items() for action in actions)
# The scope that reads the resource, by type.
SCOPES = {name: "posts:read" if name.startswith("comment.") else f"{name.partition('.')[0]}s:read" for name in TYPES}
# Everybody who may read posts sees these, whosever they are. The removal of a user stands for that of its posts.
PUBLIC = frozenset(name for name in TYPES if name.startswith(("post.", "comment.", "user.removed")))
PUBLIC_SCOPE = "posts:read"


def get_types(principal: Any, *, of_others: bool = False) -> list[str]:
    """The types of the events that a credential may read.

    Args:
        of_others: those alone whose resources the caller may see whoever owns them.
    """
    types = [name for name, scope in SCOPES.items() if scope in principal.scopes]
    if not of_others or principal.user.is_staff:
        return types
    return [name for name in types if name in PUBLIC and PUBLIC_SCOPE in principal.scopes]


class EventQuerySet(models.QuerySet["Event"]):
    def committed(self) -> EventQuerySet:
        """The events before which no other one will be."""
        return self.filter(position__lt=RawSQL(HORIZON, []))

    def after(self, position: int, id: int, limit: int) -> EventQuerySet:  # noqa: A002 - the column
        """The next events behind one, in order; from the oldest on behind 0, 0."""
        key = TupleGreaterThan(Tuple(F("position"), F("id")), (position, id))
        return self.committed().filter(key).order_by("position", "id")[:limit]

    def visible_to(self, principal: Any) -> EventQuerySet:
        """The events whose resources the caller might see when they were written, by the rights that it has now."""
        return self.filter(get_visible(principal))


def get_visible(principal: Any) -> Q:
    types, of_others = get_types(principal), get_types(principal, of_others=True)
    return Q(type__in=types) & (Q(type__in=of_others) | Q(user_id=principal.user.pk))


def is_visible(event: Event, principal: Any) -> bool:
    """Whether `get_visible` holds of an event."""
    is_own = event.user_id == principal.user.pk
    return event.type in get_types(principal, of_others=not is_own)


class Event(models.Model):
    """A change that is committed. Triggers write it; a row is in a partition of its week.

    The primary key is unique, though nothing in the database says so: each index would cost every write.

    Attributes:
        position: with the id, its place in the order.
        user_id: whose the resource is.
        changed: the names of the columns that were changed; None for all but updates.
        actor_id: the user who did it; None for the system.
        credential: the kind of the actor's credential, `session` for one.
    """

    id = models.BigAutoField(primary_key=True)
    position = models.BigIntegerField()
    resource_id = models.BigIntegerField()
    user_id = models.BigIntegerField()
    actor_id = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    type = models.CharField(max_length=20)
    changed = ArrayField(models.TextField(), null=True)
    credential = models.TextField(null=True)  # noqa: DJ001 - null means no actor
    request_id = models.TextField(null=True)  # noqa: DJ001 - null means no request

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["position", "id"]
        indexes = [
            models.Index(fields=["position", "id"], name="events_order"),
            models.Index(fields=["user_id", "position", "id"], name="events_user"),
            # Of what one did with the rows of others, for the erasure. Few events are in it.
            models.Index(
                fields=["actor_id", "position", "id"],
                name="events_actor",
                condition=~Q(actor_id=F("user_id")) & ~Q(request_id=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.resource_id}"

    @property
    def resource(self) -> str:
        return self.type.partition(".")[0]


class EventEpoch(models.Model):
    """Since when the events are complete: cursors lead on within it alone. There is one, or none without EVENTS.

    Attributes:
        number: by which cursors know it.
        origin: of config.postgresql.events. Another one says that the database was restored from a dump.
        dropped_position: with `dropped_id`, up to where events were dropped.
    """

    number = models.UUIDField(primary_key=True, db_default=models.Func(function="gen_random_uuid"))
    origin = models.TextField()
    dropped_position = models.BigIntegerField(db_default=0)
    dropped_id = models.BigIntegerField(db_default=0)

    def __str__(self) -> str:
        return str(self.number)
