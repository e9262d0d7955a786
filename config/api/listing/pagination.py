"""Two ways through a list behind one contract: by offset with an exact total, by cursor from any row on."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.listing.bounded import MAX_COUNTED, BoundedKeysetQuery, build_search, parse_words
from config.api.listing.cursors import CursorPosition, build_binding, open_cursor, seal_cursor
from config.api.listing.filters import SEARCH
from config.api.listing.keyset import KeysetQuery
from config.api.listing.query import QueryParameters
from config.api.representation.envelope import LINKS
from config.api.versions.table import Change
from config.api.versions.versioning import strip_prefix
from config.http.headers import format_links
from config.http.json import JSONObject

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
# One position in a list, one way to say it.
MODES = ("page", "offset", "cursor")

# The largest number that fits into a client's 64 bits.
MAX_POSITION = 2**63 - 1

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]+")
# Python converts no number of thousands of digits. One that has more digits than these is beyond 64 bits.
_MAX_DIGITS = 20


def build_query(queryset: QuerySet[Any], view: Any) -> KeysetQuery:
    """The list that a view's request asks for. What is wrong with its filters is refused in its parameters.

    Args:
        queryset: that of the view, filtered and ordered.
        view: with its parameters.
    """
    filters: dict[str, str] = view.filter_values
    with_related = partial(view.with_related, names=view.field_names, single=False)
    ordering, parameters = view.ordering, view.parameters
    if not parameters.uses_later or parameters.problems:
        return KeysetQuery(queryset, ordering, filters, with_related)
    others = {name: value for name, value in filters.items() if name != SEARCH}
    view.filterset_class.refuse_bounds(others, ordering.field, parameters)
    words = parse_words(filters[SEARCH], queryset, parameters) if SEARCH in filters else ()
    build: Any = partial(build_search, words) if words else BoundedKeysetQuery
    query: KeysetQuery = build(queryset, ordering, others, with_related, view.filterset_class)
    return query


class ListPagination(BasePagination):
    """`?page=`, `?offset=` or `?cursor=`, with `?limit=`.

    Attributes:
        meta: of the page.
        parameter: the query parameter that says which page.
        positions: its value for each link relation.
    """

    meta: dict[str, Any]
    parameter: str
    positions: dict[str, str]

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request, view: Any = None) -> list[Any]:
        """The rows of the page that the request asks for.

        Raises:
            DomainError: VALIDATION_ERROR naming everything that is wrong with the query, INVALID_CURSOR.
        """
        return self.paginate(build_query(queryset, view), view)

    def paginate(self, query: KeysetQuery, view: Any) -> list[Any]:
        """The rows of the page of a list that is known as a KeysetQuery."""
        self.view = view
        parameters: QueryParameters = view.parameters
        parameters.know(*MODES)
        present = [name for name in MODES if name in parameters.query]
        for name in present if len(present) > 1 else ():
            parameters.refuse(name, f"Send only one of {' and '.join(present)}.")
        limit = min(parse_whole_number(parameters, "limit", DEFAULT_LIMIT, 1), MAX_LIMIT)
        if "cursor" in present or (not present and parameters.obey(Change.CURSOR_BY_DEFAULT)):
            return self._paginate_by_cursor(query, limit)
        return self._paginate_by_offset(query, limit)

    # --- By offset

    def _paginate_by_offset(self, query: KeysetQuery, limit: int) -> list[Any]:
        parameters: QueryParameters = self.view.parameters
        by_offset = "offset" in parameters.query
        page = parse_whole_number(parameters, "page", 1, 1, MAX_POSITION)
        offset = parse_whole_number(parameters, "offset", 0, 0, MAX_POSITION) if by_offset else (page - 1) * limit
        if query.is_paged_up_to_bound and offset + limit > MAX_COUNTED:
            message = f"With these filters, pages end at item {MAX_COUNTED}. Use cursor to read further."
            parameters.refuse("offset" if by_offset else "page", message)
        parameters.check()
        rows, total = query.slice(offset, offset + limit)
        # The greatest offset, with a limit of 1, is on a page beyond 64 bits.
        self.meta = {"page": min(offset // limit + 1, MAX_POSITION), "limit": limit}
        if (least := query.get_least(total)) is not None:
            self.meta |= {"total": None, "totalPages": None, "totalAtLeast": least}
            offsets = _get_offsets(offset, limit, least)
            # Nobody knows which page is the last.
            offsets.pop("last", None)
            if offset + 2 * limit > MAX_COUNTED:
                offsets.pop("next", None)
        else:
            self.meta |= {"total": total, "totalPages": -(-total // limit)}
            offsets = _get_offsets(offset, limit, total)
        self.parameter = "offset" if by_offset else "page"
        self.positions = {name: str(each if by_offset else each // limit + 1) for name, each in offsets.items()}
        return rows

    # --- By cursor

    def _paginate_by_cursor(self, query: KeysetQuery, limit: int) -> list[Any]:
        parameters: QueryParameters = self.view.parameters
        cursor, ordering = parameters.get("cursor", opaque=True), query.ordering
        parameters.check()
        order = ("order", "desc" if ordering.descending else "asc")
        # A cursor belongs to one list, one order and its filters.
        address = ("list", strip_prefix(self.view.request.path))
        binding = build_binding(address, *self.view.filter_values.items(), ("sort", ordering.field), order)
        position = open_cursor(cursor, binding, query.model, ordering.columns) if cursor else None
        rows, previous, following = _read_side(query, position, limit)
        previous_cursor = seal_cursor(previous, binding) if previous else None
        next_cursor = seal_cursor(following, binding) if following else None
        cursors = {"first": "", "prev": previous_cursor, "next": next_cursor}
        self.parameter, self.positions = "cursor", {name: each for name, each in cursors.items() if each is not None}
        self.meta = {"nextCursor": next_cursor, "prevCursor": previous_cursor, "hasMore": following is not None}
        return rows

    # --- The response

    def get_links(self) -> dict[str, dict[str, str]]:
        """The links of the page, which keep the query but for the position. In a position is nothing to encode."""
        path, parameters = self.view.request.path, self.view.parameters.encode()
        query = "&".join([text for _, text in parameters])
        others = "".join([f"{text}&" for name, text in parameters if name != self.parameter])
        links = {"self": {"href": f"{path}?{query}" if query else path}}
        for relation, position in self.positions.items():
            links[relation] = {"href": f"{path}?{others}{self.parameter}={position}"}
        return links

    def get_paginated_response(self, data: Any) -> Response:
        links, enveloped = self.get_links(), self.view.enveloped
        headers = {"Link": format_links(links)}
        if not enveloped and self.meta.get("total") is not None:
            headers["X-Total-Count"] = str(self.meta["total"])
        return self.view.build_response(build_page(data, self.meta, links) if enveloped else data, headers=headers)


def _read_side(
    query: KeysetQuery, position: CursorPosition | None, limit: int
) -> tuple[list[Any], CursorPosition | None, CursorPosition | None]:
    """The rows of a page in list order, and the positions of the pages before and behind it."""
    rows, has_others, reached = query.seek(position, limit + 1)
    get_key = query.ordering.get_key
    # The key of the last row that is shown, or was checked.
    last_key = get_key(rows[limit - 1]) if len(rows) > limit else reached
    del rows[limit:]
    backwards = position is not None and position.backwards
    onwards, back = ("<", ">") if backwards else (">", "<")
    further = CursorPosition(onwards, last_key) if last_key else None
    others = None
    if has_others and position is not None:
        others = CursorPosition(back, get_key(rows[0])) if rows else position.opposite
    if backwards:
        return rows[::-1], further, others
    return rows, others, further


def build_page(items: Sequence[object], meta: Mapping[str, object], links: Mapping[str, object]) -> JSONObject:
    """The envelope of a page."""
    return {"success": True, "data": items, "meta": meta, LINKS: links}


def parse_whole_number(
    parameters: QueryParameters, name: str, default: int, minimum: int, maximum: int | None = None
) -> int:
    """A whole number from the query; text that is not a number at all once counted as absent.

    Args:
        parameters: of the request, in which a wrong number is refused.
        name: of the parameter.
        default: where it is absent.
        minimum: the least number that is taken.
        maximum: the greatest one; None where the caller uses its own in place of a greater one.
    """
    text = parameters.get(name)
    if text is None:
        return default
    # The first digits of a number that is beyond 64 bits are, too.
    if _WHOLE.fullmatch(text) and (number := int(text.lstrip("0")[:_MAX_DIGITS] or "0")) >= minimum:
        if maximum is None or number <= maximum:
            return number
        parameters.refuse(name, f"Must be at most {maximum}.")
    elif _DECIMAL.fullmatch(text) or parameters.obey(Change.NUMBERS_ONLY):
        parameters.refuse(name, f"Must be a whole number from {minimum}.")
    return default


def _get_offsets(offset: int, limit: int, total: int) -> dict[str, int]:
    """The offsets of the pages to which a page links."""
    last = max(total - 1, 0) // limit * limit
    offsets = {"first": 0}
    if offset > 0 and total:
        offsets["prev"] = min(max(offset - limit, 0), last)
    if offset + limit < total:
        offsets["next"] = offset + limit
    if total:
        offsets["last"] = last
    return offsets
