"""A list on its page: the form in which a person filters and orders it, its addresses, and its rows as a table.

Which filters go together is the list's to say: what it refuses is told on the page, as to a program.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest

from config.api.browsable.navigation import build_address, get_query
from config.api.listing.filters import BOUNDS, SEARCH, BoundFilter, IdsFilter, SearchFilter
from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT
from config.api.versions.table import Version
from config.api.versions.versioning import VERSION_PARAMETER, get_prefix, strip_prefix
from config.api.viewsets import ResourceViewSet
from config.http.headers import quote_address
from config.http.media_types import CSV, NDJSON
from config.http.url_map import find_view

# The parameters that choose a page, each with the value that begins at the start of the list.
START = {"page": "1", "offset": "0", "cursor": ""}


class ListQuery:
    """The query of the request of a list.

    Args:
        request: the request of the list.
        view: its view.

    Attributes:
        sort: the field that the list is sorted by.
    """

    def __init__(self, request: HttpRequest, view: ResourceViewSet) -> None:
        self.view, self.path = view, request.path
        self.query = {name: str(value) for name, value in get_query(request).items()}
        given = [name for name in self.names if self.query.get(name)]
        self.sort = self.query.get("sort") or view.filterset_class.get_default_sort(given)
        self.descends = self.query.get("order") == "desc"

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the filters that the caller may use, the search first."""
        # A request that is refused before its query is looked at has no parameters.
        parameters, filterset = getattr(self.view, "parameters", None), self.view.filterset_class
        principal = getattr(self.view.request, "auth", None) if parameters else None
        later = filterset.later if parameters and parameters.takes_later else ()
        refused = () if principal and principal.user.is_staff else self.view.staff_filters
        names = [name for name in (*filterset.first, *later) if name not in refused]
        return sorted(names, key=SEARCH.__ne__)

    def build_address(self, **more: str) -> str:
        """The address of the start of the list, in the way of paging of the request.

        Args:
            more: parameters that replace the request's.
        """
        kept = [(name, value) for name, value in self.query.items() if name not in START and name not in more and value]
        mode = () if more.keys() & START.keys() else [(name, START[name]) for name in START if name in self.query][:1]
        return quote_address(self.path, urlencode([*kept, *more.items(), *mode]))

    def build_downloads(self, version: Version) -> Mapping[str, object] | None:
        """The address of the whole list, and its formats; None if it cannot be streamed.

        Args:
            version: of the page: with another Accept, an address without one may be answered in another version.
        """
        if not self.view.may_stream():
            return None
        left_out = {*START, "limit", "include", "envelope", VERSION_PARAMETER}
        query = [(name, value) for name, value in self.query.items() if name not in left_out]
        path = f"/api/v{version}{strip_prefix(self.path)}"
        return {"address": quote_address(path, urlencode(query)), "formats": (("CSV", CSV), ("NDJSON", NDJSON))}

    def build_form(self) -> Mapping[str, object]:
        """The form of the list's filters, order, limit and fields. It begins at the start of the list."""
        own = {*self.names, "sort", "order", "limit", "fields"}
        controls = [self._build_control(name) for name in self.names]
        bounds = [control for control in controls if control["is_bound"]]
        return {
            "controls": [control for control in controls if not control["is_bound"]],
            "bounds": bounds,
            "has_bounds": any(control["value"] for control in bounds),
            "sortable": self.view.sortable,
            "default_limit": DEFAULT_LIMIT,
            "max_limit": MAX_LIMIT,
            "readable_fields": ", ".join(self.view.readable_fields),
            "query": self.query,
            "hidden": [(name, START.get(name, value)) for name, value in self.query.items() if name not in own],
        }

    def _build_control(self, name: str) -> Mapping[str, object]:
        """One filter of the form. With `choices` it is a choice of one of them, or of none."""
        declared, value = self.view.filterset_class.base_filters[name], self.query.get(name, "")
        choices = [choice for choice, _ in declared.extra.get("choices", ())]
        if choices and value not in {*choices, ""}:
            # Several of them, by commas.
            choices.append(value)
        hint, is_bound = "", isinstance(declared, BoundFilter)
        match declared:
            case BoundFilter():
                hint = BOUNDS[declared.lookup_expr]
            case SearchFilter():
                hint = f"Matches the start of any word in {' or '.join(declared.columns)}."
            case IdsFilter():
                hint = "Separate several values with commas."
        return {"name": name, "value": value, "hint": hint, "choices": choices, "is_bound": is_bound}


# --- The rows as a table, whose ids are links, and whose column heads sort

# A cell shows the beginning of a longer text; the JSON has the whole.
MAX_TEXT = 80
# A text of up to this length stays on one line.
MAX_NARROW = 14


class Column(NamedTuple):
    """A column of the table.

    Attributes:
        address: the list sorted by this column, in the other direction if it is sorted by it already; or empty.
        direction: how the list is sorted by it, in the words of `aria-sort`; empty if it is not.
    """

    name: str
    address: str = ""
    direction: str = ""

    @property
    def words(self) -> Sequence[str]:
        """The words of the name, between which it may wrap."""
        return self.name.split("_")


class Cell(NamedTuple):
    """A value as text.

    Attributes:
        address: of what the value is the id of; or empty.
        width: `narrow` if it stays on one line, `time` if on one or two; or empty.
    """

    text: str
    address: str = ""
    width: str = ""


def build_table(request: HttpRequest, query: ListQuery, body: Any) -> Mapping[str, object]:
    """The columns and rows of a list.

    Args:
        request: the request of the list.
        query: its query.
        body: the parsed body of the response, with or without its envelope.
    """
    view = query.view
    rows: Sequence[Mapping[str, object]] = body if isinstance(body, list) else body["data"]
    (own_path,) = (link.path for link in view.links if link.rel == "self")
    names = rows[0] if rows else [name for name in view.readable_fields if name in view.field_names]
    return {
        "columns": [_build_column(query, name) for name in names],
        # `fields` may leave out the id of the parent, which the address of the list names.
        "rows": [[_build_cell(request, own_path, {**view.kwargs, **row}, name) for name in row] for row in rows],
    }


def _build_column(query: ListQuery, name: str) -> Column:
    if name not in query.view.sortable:
        return Column(name)
    is_sorted = query.sort == name
    address = query.build_address(sort=name, order="desc" if is_sorted and not query.descends else "asc")
    return Column(name, address, ("descending" if query.descends else "ascending") if is_sorted else "")


def _build_cell(request: HttpRequest, own_path: str, row: Mapping[str, object], name: str) -> Cell:
    value = row[name]
    if name == "id":
        path = own_path.format(SimpleNamespace(**row))
    elif name.endswith("_id") and value is not None:
        path = f"/{name.removesuffix('_id')}s/{value}"
    elif name.endswith("_at") and isinstance(value, str):
        # To the second: two times of 27 characters make a table wider than a screen.
        return Cell(f"{value[:10]} {value[11:19]}Z", width="time")
    else:
        text = _to_text(value)
        return Cell(text, width="narrow" if len(text) <= MAX_NARROW else "")
    path = get_prefix(request.path) + path
    return Cell(_to_text(value), build_address(request, path) if find_view(path) else "", width="narrow")


def _to_text(value: object) -> str:
    match value:
        case None:
            return "–"
        case bool() | dict():
            return json.dumps(value, default=str)
        case list() if value and isinstance(value[0], dict):
            return f"{len(value)} items"
        case list():
            return ", ".join(map(str, value)) or "–"
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}…"
    return str(value)
