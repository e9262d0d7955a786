"""Two ways through a list behind one contract: by offset with an exact total, by cursor from any row on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Model

from config.api.listing import cursors
from config.api.listing.keyset import ListedRows
from config.api.listing.ordering import Ordering
from config.api.listing.query import Parameters
from config.api.versions.table import Change

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
# One place in a list, one way to say it.
MODES = ("page", "offset", "cursor")

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Python converts no more digits than these, for the time that it takes.
_WHOLE = re.compile(r"[0-9]{1,4300}")


def _whole(parameters: Parameters, name: str, default: int, minimum: int) -> int:
    """A whole number from the query. What is not a number at all once counted as absent."""
    text = parameters.get(name)
    if text is None:
        return default
    if _WHOLE.fullmatch(text) and (number := int(text)) >= minimum:
        return number
    if _DECIMAL.fullmatch(text) or parameters.obey(Change.NUMBERS_ONLY):
        parameters.refuse(name, f"Must be a whole number from {minimum}, of at most 4300 digits.")
    return default


@dataclass(slots=True)
class Page:
    """A page of a list: its rows and its `meta`, and the places that its links lead to.

    Attributes:
        place: the parameter that says where in the list a page is.
        links: its value for each link relation.
    """

    rows: list[Any]
    meta: dict[str, Any]
    place: str
    links: dict[str, str]


class ListPagination:
    """What both ways share: how they are read from the query, and what they return.

    Args:
        parameters: the request's; what is wrong with the paging ones is refused there.
        ordering: the order of the list.
    """

    def __init__(self, parameters: Parameters, ordering: Ordering) -> None:
        self.limit = min(_whole(parameters, "limit", DEFAULT_LIMIT, 1), MAX_LIMIT)
        self.ordering = ordering

    def page_of(self, listed: ListedRows, values: Mapping[str, Any]) -> Page:
        """The page of a list for whom the values of its Parameters are."""
        raise NotImplementedError


class OffsetPagination(ListPagination):
    """`?page=` or `?offset=`, with `?limit=` and an exact total."""

    def __init__(self, parameters: Parameters, ordering: Ordering) -> None:
        super().__init__(parameters, ordering)
        self.by_offset = "offset" in parameters.query
        page = _whole(parameters, "page", 1, 1)
        self.offset = _whole(parameters, "offset", 0, 0) if self.by_offset else (page - 1) * self.limit

    def page_of(self, listed: ListedRows, values: Mapping[str, Any]) -> Page:
        items, total = listed.page(self.offset, self.offset + self.limit, values)
        page = self.offset // self.limit + 1
        meta = {
            # Written out as a decimal where it is beyond the 64 bits that the JSON library has for integers.
            "page": page if page < 2**63 else Decimal(page),
            "limit": self.limit,
            "total": total,
            "totalPages": -(-total // self.limit),
        }
        places = self._offsets(total)
        if self.by_offset:
            return Page(items, meta, "offset", {rel: str(offset) for rel, offset in places.items()})
        return Page(items, meta, "page", {rel: str(offset // self.limit + 1) for rel, offset in places.items()})

    def _offsets(self, total: int) -> dict[str, int]:
        """Where the links of the page lead to."""
        last = max(total - 1, 0) // self.limit * self.limit
        offsets = {"first": 0}
        if self.offset > 0 and total:
            offsets["prev"] = min(max(self.offset - self.limit, 0), last)
        if self.offset + self.limit < total:
            offsets["next"] = self.offset + self.limit
        if total:
            offsets["last"] = last
        return offsets


class CursorPagination(ListPagination):
    """`?cursor=`: the rows beyond a place in the list, which is a sort key and outlives the row it was taken from.

    Args:
        bound_to: what a cursor belongs to beside the order, that is the list's address and its filters.
    """

    def __init__(self, parameters: Parameters, ordering: Ordering, bound_to: Mapping[str, str]) -> None:
        super().__init__(parameters, ordering)
        self.cursor = parameters.get("cursor", opaque=True)
        order = "desc" if ordering.descending else "asc"
        self.bound_to = cursors.binding(*bound_to.items(), ("sort", ordering.field), ("order", order))

    def page_of(self, listed: ListedRows, values: Mapping[str, Any]) -> Page:
        if not self.cursor:
            return self._forward(listed, None, values)
        place = cursors.read(self.cursor, self.bound_to, listed.model, self.ordering.columns)
        return (self._backward if place.backward else self._forward)(listed, place, values)

    def _forward(self, listed: ListedRows, place: cursors.Place | None, values: Mapping[str, Any]) -> Page:
        items = listed.beyond(place, self.limit + 1, values)
        more = len(items) > self.limit
        del items[self.limit :]
        before = None
        if place is not None:
            # On an empty page the row that the cursor was taken from is the first one before it.
            before = self._place("<", items[0]) if items else cursors.Place("<=", place.key)
        return self._page(items, before, self._place(">", items[-1]) if more else None, more)

    def _backward(self, listed: ListedRows, place: cursors.Place, values: Mapping[str, Any]) -> Page:
        items = listed.beyond(place, self.limit + 1, values, backwards=True)
        earlier = len(items) > self.limit
        del items[self.limit :]
        items.reverse()
        # The rows that the walk came from may be gone by now.
        rest = cursors.Place(">=" if place.comparison == "<" else ">", place.key)
        more = bool(listed.beyond(rest, 1, values))
        after = (self._place(">", items[-1]) if items else rest) if more else None
        return self._page(items, self._place("<", items[0]) if earlier else None, after, more)

    def _place(self, comparison: str, row: Model) -> cursors.Place:
        return cursors.Place(comparison, self.ordering.key(row))

    def _page(self, items: list[Any], before: cursors.Place | None, after: cursors.Place | None, more: bool) -> Page:
        previous_cursor = cursors.seal(before, self.bound_to) if before else None
        next_cursor = cursors.seal(after, self.bound_to) if after else None
        links = {"first": ""}
        if previous_cursor:
            links["prev"] = previous_cursor
        if next_cursor:
            links["next"] = next_cursor
        meta = {"nextCursor": next_cursor, "prevCursor": previous_cursor, "hasMore": more}
        return Page(items, meta, "cursor", links)


def read(parameters: Parameters, ordering: Ordering, bound_to: Mapping[str, str]) -> ListPagination:
    """The way through the list that the request asks for."""
    given = [name for name in MODES if name in parameters.query]
    for name in given if len(given) > 1 else ():
        parameters.refuse(name, f"Give one of {' and '.join(given)}.")
    by_cursor = "cursor" in given or (not given and parameters.obey(Change.CURSOR_BY_DEFAULT))
    if by_cursor:
        return CursorPagination(parameters, ordering, bound_to)
    return OffsetPagination(parameters, ordering)
