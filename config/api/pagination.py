"""Two ways through a list behind one contract: by offset with an exact total, by cursor from any row on."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Model

from config.api import cursors
from config.api.listed import ListedRows
from config.api.ordering import Ordering
from config.api.parameters import Parameters
from config.api.versions import Change

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
    if text is None or not (_DECIMAL.fullmatch(text) or parameters.obey(Change.NUMBERS_ONLY)):
        return default
    if not _WHOLE.fullmatch(text) or int(text) < minimum:
        parameters.refuse(name, f"Must be a whole number from {minimum}, of at most 4300 digits.")
        return default
    return int(text)


@dataclass(slots=True)
class Page:
    """A page of a list: its rows, its `meta`, and for each link relation what changes in the query string."""

    rows: list[Any]
    meta: dict[str, Any]
    links: dict[str, dict[str, str]] = field(default_factory=dict)


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
        return Page(items, meta, dict(self._links(total)))

    def _links(self, total: int) -> Iterator[tuple[str, dict[str, str]]]:
        last = max(total - 1, 0) // self.limit * self.limit
        yield "first", self._at(0)
        if self.offset > 0 and total:
            yield "prev", self._at(min(max(self.offset - self.limit, 0), last))
        if self.offset + self.limit < total:
            yield "next", self._at(self.offset + self.limit)
        if total:
            yield "last", self._at(last)

    def _at(self, offset: int) -> dict[str, str]:
        return {"offset": str(offset)} if self.by_offset else {"page": str(offset // self.limit + 1)}


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
        links = {"first": {"cursor": ""}}
        if previous_cursor:
            links["prev"] = {"cursor": previous_cursor}
        if next_cursor:
            links["next"] = {"cursor": next_cursor}
        return Page(items, {"nextCursor": next_cursor, "prevCursor": previous_cursor, "hasMore": more}, links)


def read(parameters: Parameters, ordering: Ordering, bound_to: Mapping[str, str]) -> ListPagination:
    """The way through the list that the request asks for."""
    given = [name for name in MODES if name in parameters.query]
    for name in given if len(given) > 1 else ():
        parameters.refuse(name, f"Give one of {' and '.join(given)}.")
    by_cursor = "cursor" in given or (not given and parameters.obey(Change.CURSOR_BY_DEFAULT))
    if by_cursor:
        return CursorPagination(parameters, ordering, bound_to)
    return OffsetPagination(parameters, ordering)
