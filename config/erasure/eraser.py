"""Erases the rows of removed users, which are already invisible (config.postgresql.visibility).

What is left to do is in the database: a removed user has an Erasure until nothing refers to it but what stays. A
process that is killed loses its current batch, and another one continues.

Nobody waits longer than for a batch. A batch waits for its locks but a moment, and is tried again where it does not get
them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, models
from django.db.models import F, ForeignKey
from psycopg.errors import ForeignKeyViolation

from config.models import Erasure, Event, IdempotencyRecord, VisibleManager, WebhookDelivery
from config.models.events import EventQuerySet
from config.postgresql.compiling import fetch_rows
from config.postgresql.transactions import run_briefly, try_advisory_lock

Result = TypeVar("Result")

# The target time of a batch, with its COMMIT; the number of its rows follows.
SECONDS_OF_A_BATCH = 0.05
_FIRST_SIZE, _MAX_SIZE = 50, 1_000
# Ids that are looked for at once: the look goes over the entries of all rows that were erased just before, and what
# goes with the rows is looked for once for all of them.
_IDS = 20_000
# Most users have left little, and what goes with them is looked for once for all of them.
_USERS = 100
# One process at a time: two would leave the readers less than half of the database. Any constant will do, as long as
# nobody else takes the same advisory lock.
_LOCK = 0x6572_6173


def erase(*, rest: float = 0.1, is_stopped: Callable[[], bool] = lambda: False) -> int:
    """Erases what removed users have left, unless another process is at it.

    Args:
        rest: the pause after each batch, in proportion to what it took.
        is_stopped: asked after each batch, whether to leave the rest to others.

    Returns:
        The number of users of whom nothing is left but their tombstones.
    """
    done = 0
    with suppress(_StoppedError):
        # A look that writes nothing, also on a database that only reads.
        while user_ids := list(Erasure.objects.order_by("pk").values_list("pk", flat=True)[:_USERS]):
            _Eraser(user_ids, rest, is_stopped).run()
            done += len(user_ids)
    return done


class _StoppedError(Exception):
    """The eraser was asked to stop, or another one is at it."""


class _Eraser:
    """Erases the rows of some removed users."""

    def __init__(self, user_ids: list[int], rest: float, is_stopped: Callable[[], bool]) -> None:
        self.user_ids, self.rest, self.is_stopped = user_ids, rest, is_stopped
        self.sizes: dict[type[models.Model], float] = defaultdict(lambda: _FIRST_SIZE)

    def run(self) -> None:
        self.erase_below(get_user_model(), self.user_ids)
        for user_id in self.user_ids:
            for forget in (_delete_answers, _empty_attempts, _forget_requests):
                while self.write(partial(forget, user_id)):
                    pass
        # A row added in the meantime would stay, and become visible again. The service cannot add one: adding a row
        # locks its owner, who must exist.
        self.write(Erasure.objects.filter(pk__in=self.user_ids).delete)

    def erase_below(self, model: Any, ids: Sequence[Any]) -> None:
        """Erases what goes with rows of a model."""
        for relation in model._meta.related_objects:
            if relation.on_delete is models.CASCADE and relation.related_model is not Erasure:
                self.erase_rows(relation.field, ids)

    def erase_rows(self, key: ForeignKey, ids: Sequence[Any]) -> None:
        """Erases the rows whose foreign key refers to one of `ids`, and before them what goes with them."""
        while found := _find(key, ids):
            self.erase_below(key.model, found)
            while found:
                size = int(self.sizes[key.model])
                batch, found = found[:size], found[size:]
                started = time.monotonic()
                try:
                    self.write(partial(_delete, key.model, batch))
                except IntegrityError as error:
                    # Dependent rows have been added since, and must be deleted first: these rows are found again.
                    if not isinstance(error.__cause__, ForeignKeyViolation):
                        raise
                # At most doubled, because one batch may be cheap by chance.
                factor = SECONDS_OF_A_BATCH / max(time.monotonic() - started, SECONDS_OF_A_BATCH / 2)
                self.sizes[key.model] = min(max(size * factor, 1), _MAX_SIZE)

    def write(self, batch: Callable[[], Result]) -> Result:
        """Runs a batch in a transaction of its own, again where it did not get its locks."""

        def write(cursor: object) -> Result:
            if self.is_stopped() or not try_advisory_lock(_LOCK):
                raise _StoppedError
            return batch()

        started = time.monotonic()
        result = run_briefly(write)
        time.sleep((time.monotonic() - started) * self.rest)
        return result


def _delete_answers(user_id: int) -> int:
    """Deletes some of the stored responses that show a row of the user and rows of others."""
    answers = IdempotencyRecord.objects.including_erased()
    ids = list(answers.showing(user_id).order_by().values_list("pk", flat=True)[:_FIRST_SIZE])
    if ids:
        _delete(IdempotencyRecord, ids)
    return len(ids)


def _empty_attempts(user_id: int) -> int:
    """Takes away what receivers have answered to some events that are about a user, whom the answers may name."""
    deliveries = WebhookDelivery.objects.including_erased()
    ids = list(deliveries.showing([user_id]).order_by().values_list("pk", flat=True)[:_FIRST_SIZE])
    return int(deliveries.filter(pk__in=ids).update(attempts=[])) if ids else 0


def _forget_requests(user_id: int) -> int:
    """Takes away the ids of requests from some events of a user, and of what the user did with the rows of others.

    The user's client may have named the user in them, and receivers may have repeated them in their answers.
    """
    done = Event.objects.filter(actor_id=user_id).exclude(actor_id=F("user_id"))
    return _forget_some(Event.objects.filter(user_id=user_id)) + _forget_some(done)


def _forget_some(events: EventQuerySet) -> int:
    named = events.exclude(request_id=None).order_by("position", "id")
    found = list(named.values_list("position", "id", "user_id")[:_MAX_SIZE])
    if not found:
        return 0
    ids = [event_id for _, event_id, _ in found]
    answered = WebhookDelivery.objects.including_erased().showing({owner for *_, owner in found})
    answered.filter(event_id__in=ids).update(attempts=[])
    return int(named.filter(position__range=(found[0][0], found[-1][0]), id__in=ids).update(request_id=None))


# `_find` and `_delete` give an array, as one parameter: thousands of them take longer to prepare than to look up.
def _find(key: ForeignKey, ids: Sequence[Any]) -> list[Any]:
    """The primary keys of rows whose foreign key refers to one of `ids`, also of those that are invisible."""
    table, primary_key, column = _quote(key.model, key)
    sql = f"SELECT {primary_key} FROM {table} WHERE {column} = ANY(%s) LIMIT {_IDS}"  # noqa: S608 - names of ours
    return [found for (found,) in fetch_rows(sql, [list(ids)])]


def _delete(model: type[models.Model], ids: Sequence[Any]) -> None:
    if any(relation.on_delete is not models.CASCADE for relation in model._meta.related_objects):
        # Django knows what else there is to do.
        manager: Any = model._default_manager
        rows = manager.including_erased() if isinstance(manager, VisibleManager) else model._base_manager.all()
        rows.filter(pk__in=ids).delete()
        return
    table, primary_key, _ = _quote(model, model._meta.pk)
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE {primary_key} = ANY(%s)", [list(ids)])  # noqa: S608 - names of ours


def _quote(model: Any, field: Any) -> list[str]:
    """As SQL: a table, its primary key, and another of its columns."""
    return [connection.ops.quote_name(name) for name in (model._meta.db_table, model._meta.pk.column, field.column)]
