"""An event as the feed and webhooks show it: thin, so that what is erased is erased here, too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from config.api.listing.cursors import CursorPosition, build_binding, decrypt_cursor, seal_cursor
from config.api.principal import Principal
from config.http.json import JSONObject
from config.models import Event

FIELDS = ("id", "cursor", "type", "created_at", "resource", "user_id", "changed", "actor", "request_id")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Not bound to a list and its filters: a place in time, where any follower may continue.
_BINDING = build_binding(("feed", ""))


class Place(NamedTuple):
    """The event after which a follower continues, its epoch, and what distinguishes it from one of another history.

    0, 0 is the beginning.
    """

    epoch: UUID | None
    position: int = 0
    id: int = 0
    microseconds: int = 0


def get_place(event: Event, epoch: UUID | None) -> Place:
    return Place(epoch, event.position, event.id, get_microseconds(event.created_at))


def get_microseconds(time: datetime) -> int:
    """Since 1970, exactly."""
    return (time - EPOCH) // timedelta(microseconds=1)


def seal_place(place: Place) -> str:
    """The cursor of a place."""
    return seal_cursor(CursorPosition(">", place), _BINDING)


def open_place(cursor: str) -> Place:
    """The place of a cursor.

    Raises:
        DomainError: INVALID_CURSOR.
    """
    _, epoch, *others = decrypt_cursor(cursor, _BINDING)
    return Place(UUID(epoch), *others)


def represent(
    event: Event, epoch: UUID | None, principal: Principal, build_address: Callable[[str], str]
) -> JSONObject:
    """What a caller sees of an event.

    Args:
        event: one that the caller may see.
        epoch: the present one.
        principal: the caller.
        build_address: makes the address of a path such as `/users/1`.
    """
    is_staff = principal.user.is_staff
    actor = None if event.actor_id is None else {"user_id": event.actor_id, "credential": event.credential}
    return {
        "id": event.id,
        "cursor": seal_place(get_place(event, epoch)),
        "type": event.type,
        "created_at": event.created_at,
        "resource": {
            "type": event.resource,
            "id": event.resource_id,
            "href": build_address(f"/{event.resource}s/{event.resource_id}"),
        },
        "user_id": event.user_id,
        "changed": event.changed,
        "actor": actor if is_staff else None,
        "request_id": event.request_id if is_staff else None,
    }
