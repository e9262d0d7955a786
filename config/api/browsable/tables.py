"""The rows of a list as a table, whose ids are links, and whose column heads sort."""

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.http import HttpRequest

from config.api.browsable.navigation import build_address
from config.api.browsable.queries import ListQuery
from config.api.versions.versioning import get_prefix
from config.http.url_map import find_view

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
        case bool():
            return "true" if value else "false"
        case list() if value and isinstance(value[0], dict):
            return f"{len(value)} items"
        case list():
            return ", ".join(map(str, value)) or "–"
        case dict():
            return json.dumps(value, default=str)
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}…"
    return str(value)
