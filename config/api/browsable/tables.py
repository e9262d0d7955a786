"""The rows of a list as a table, whose ids are links, and whose column heads sort."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from config.api.browsable.navigation import build_address, get_query, has_route
from config.api.versions.versioning import get_prefix
from config.api.viewsets import ResourceViewSet
from config.http.headers import quote_address

# A cell shows the beginning of a longer text; the JSON has the whole.
MAX_TEXT = 80
# What a cursor or a page number belongs to is another list once it is sorted otherwise.
_POSITIONS = frozenset({"page", "offset", "cursor", "sort", "order"})


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        address: the list sorted by this column, in the other direction if it is sorted by it already; or empty.
        direction: how the list is sorted by it, in the words of `aria-sort`; empty if it is not.
    """

    name: str
    address: str = ""
    direction: str = ""


@dataclass(frozen=True)
class Cell:
    """A value as text.

    Attributes:
        address: of what the value is the id of; or empty.
        is_narrow: whether it stands on one line.
    """

    text: str
    address: str = ""
    is_narrow: bool = False


def build_table(request: HttpRequest, view: ResourceViewSet, body: Any) -> Mapping[str, object] | None:
    """The table of a list.

    Args:
        request: the request of the list.
        view: its view.
        body: the parsed body of the response, with or without its envelope.

    Returns:
        Its columns and rows; None where there are no rows.
    """
    rows: Sequence[Mapping[str, object]] = body if isinstance(body, list) else body["data"]
    if not rows:
        return None
    (own_path,) = (link.path for link in view.links if link.rel == "self")
    return {
        "columns": [_build_column(request, view, name) for name in rows[0]],
        "rows": [[_build_cell(request, own_path, name, value) for name, value in row.items()] for row in rows],
    }


def _build_column(request: HttpRequest, view: ResourceViewSet, name: str) -> Column:
    if name not in view.sortable:
        return Column(name)
    query = get_query(request)
    is_sorted = query.get("sort", "id") == name
    descends = query.get("order") == "desc"
    others = [(key, value) for key, value in query.items() if key not in _POSITIONS]
    order = "desc" if is_sorted and not descends else "asc"
    address = quote_address(request.path, urlencode([*others, ("sort", name), ("order", order)]))
    return Column(name, address, ("descending" if descends else "ascending") if is_sorted else "")


def _build_cell(request: HttpRequest, own_path: str, name: str, value: object) -> Cell:
    if name == "id":
        path = own_path.format(SimpleNamespace(id=value))
    elif name.endswith("_id") and value is not None:
        path = f"/{name.removesuffix('_id')}s/{value}"
    else:
        return Cell(_to_text(value), is_narrow=not isinstance(value, str) or name.endswith("_at"))
    path = get_prefix(request.path) + path
    return Cell(_to_text(value), build_address(request, path) if has_route(path) else "", is_narrow=True)


def _to_text(value: object) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "true" if value else "false"
        case list() if value and isinstance(value[0], dict):
            return f"{len(value)} of them"
        case list():
            return ", ".join(map(str, value)) or "–"
        case dict():
            return json.dumps(value, default=str)
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}…"
    return str(value)
