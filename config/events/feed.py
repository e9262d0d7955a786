"""The events in their order, a page at a time. A reader that continues from the end of a page gets each event once.

A page costs the same however many events there are: it reads a bounded number of them, and reports how far it got.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Case, F, Q, QuerySet, Value, When, Window
from django.db.models.functions import RowNumber

from config.api.principal import Principal
from config.events.representation import EPOCH, Place, get_microseconds, get_place
from config.http.errors import MESSAGES, Detail, DomainError, ErrorCode
from config.models import Event
from config.models.events import get_types, get_visible
from config.postgresql.compiling import compile_queryset, fetch_rows
from config.postgresql.events import EPOCHS, HORIZON, ORIGIN, TABLE

MAX_SCANNED = 5_000
_COLUMNS = [field.attname for field in Event._meta.concrete_fields]
# All of one snapshot: a concurrent drop waits for it, or shows in the epoch.
_PAGE = f"""
SELECT epoch.number, epoch.dropped_position, epoch.dropped_id, known.id IS NOT NULL,
    newest.position, newest.id, newest.created_at,
    page.is_wanted, page.number, {", ".join(f"page.{name}" for name in _COLUMNS)}
FROM {EPOCHS} AS epoch
LEFT JOIN LATERAL (SELECT id FROM {TABLE} WHERE position = %s AND id = %s AND created_at = %s) AS known ON true
LEFT JOIN LATERAL (
    SELECT position, id, created_at FROM {TABLE} WHERE position < {HORIZON} ORDER BY position DESC, id DESC LIMIT 1
) AS newest ON true
LEFT JOIN LATERAL (
    SELECT * FROM ({{scanned}}) AS scanned WHERE is_wanted OR number = {MAX_SCANNED} ORDER BY position, id LIMIT %s
) AS page ON true
WHERE epoch.origin = {ORIGIN}
ORDER BY page.position, page.id
"""


class Page(NamedTuple):
    """Some events, and where to continue.

    Attributes:
        following: behind the last of them, or of those that were looked at.
        has_more: whether more events are behind that now.
    """

    events: Sequence[Event]
    following: Place
    has_more: bool


class Question(NamedTuple):
    """Which events are asked for.

    Attributes:
        place: where to continue; None for the oldest event.
        is_end: whether only the end of the feed is requested, where there is nothing yet.
        types: None for all.
        user_id: whose events; None for everybody's.
    """

    place: Place | None = None
    limit: int = 20
    is_end: bool = False
    types: Sequence[str] | None = None
    user_id: int | None = None


def read_page(principal: Principal, question: Question) -> Page:
    """The next events that a caller may see.

    Raises:
        DomainError: CURSOR_EXPIRED; SERVICE_UNAVAILABLE where the database was restored, and not migrated yet.
    """
    place, limit = question.place, question.limit
    _, position, last_id, microseconds = place or Place(None)
    sql, params = compile_queryset(_scan(principal, question, position, last_id))
    known = position, last_id, EPOCH + timedelta(microseconds=microseconds)
    rows = fetch_rows(_PAGE.format(scanned=sql), [*known, *params, 0 if question.is_end else limit + 1])
    if not rows:
        message = "The database was restored. The feed starts again when manage.py migrate has run."
        raise DomainError(ErrorCode.SERVICE_UNAVAILABLE, message)
    epoch, dropped_position, dropped_id, is_known, *newest_key = rows[0][:7]
    if place is None:
        place = Place(epoch, dropped_position, dropped_id)
    elif place.epoch != epoch or not (is_known or (position, last_id) == (dropped_position, dropped_id)):
        raise expired()
    newest = (
        place if newest_key[0] is None else Place(epoch, newest_key[0], newest_key[1], get_microseconds(newest_key[2]))
    )
    seen = [row[7:] for row in rows if row[8] is not None]
    events = [_build_event(row) for is_wanted, _, *row in seen if is_wanted]
    if len(events) > limit:
        return Page(events[:limit], get_place(events[limit - 1], epoch), has_more=True)
    following = newest
    if seen and seen[-1][1] == MAX_SCANNED:
        following = get_place(_build_event(seen[-1][2:]), epoch)
    return Page(events, following, has_more=following != newest)


def _scan(principal: Principal, question: Question, position: int, last_id: int) -> QuerySet[Event]:
    """The events that are looked at, each with whether it is wanted, and its number."""
    wanted, user_id = get_visible(principal), question.user_id
    if question.types is not None:
        wanted &= Q(type__in=question.types)
    rows = Event.objects.all()
    if user_id is None and not get_types(principal, of_others=True):
        user_id = principal.user.pk
    if user_id is not None:
        # Few events of many, which have an index of their own.
        rows = rows.filter(user_id=user_id)
    return rows.annotate(
        is_wanted=Case(When(wanted, then=Value(value=True)), default=Value(value=False)),
        number=Window(RowNumber(), order_by=[F("position"), F("id")]),
    ).after(position, last_id, MAX_SCANNED)


def _build_event(values: Sequence[Any]) -> Event:
    return Event.from_db(DEFAULT_DB_ALIAS, _COLUMNS, values)


def expired() -> DomainError:
    code = ErrorCode.CURSOR_EXPIRED
    return DomainError(code, details=[Detail("cursor", MESSAGES[code])])
