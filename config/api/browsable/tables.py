"""The rows of a list as a table, whose ids are links, and whose column heads sort and filter."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from django.http import HttpRequest

from config.api.browsable.navigation import build_address, has_route
from config.api.browsable.queries import FilterForm, ListQuery
from config.api.versions.versioning import get_prefix

# A cell shows the beginning of a longer text; the JSON has the whole.
MAX_TEXT = 80
# A text of up to this length stays on one line.
MAX_NARROW = 14


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        address: the list sorted by this column, in the other direction if it is sorted by it already; or empty.
        direction: how the list is sorted by it, in the words of `aria-sort`; empty if it is not.
        left_out: the filters that do not go with this order, and are left out of the address.
        form: the filters by this column, if it has any.
    """

    name: str
    address: str = ""
    direction: str = ""
    left_out: str = ""
    form: FilterForm | None = None

    @property
    def words(self) -> Sequence[str]:
        """The words of the name, between which it may wrap."""
        return self.name.split("_")


@dataclass(frozen=True)
class Cell:
    """A value as text.

    Attributes:
        address: of what the value is the id of; or empty.
        width: `narrow` if it stays on one line, `time` if on one or two; or empty.
    """

    text: str
    address: str = ""
    width: str = ""


def build_table(request: HttpRequest, query: ListQuery, body: Any) -> Mapping[str, object]:
    """The table of a list.

    Args:
        request: the request of the list.
        query: its query.
        body: the parsed body of the response, with or without its envelope, or that of an error.

    Returns:
        Its columns and rows, the filters that go when it is sorted by another column, with those columns, and the forms
        of filters by fields that are not shown.
    """
    view = query.view
    rows: Sequence[Mapping[str, object]] = body if isinstance(body, list) else body.get("data", ())
    (own_path,) = (link.path for link in view.links if link.rel == "self")
    names = rows[0] if rows else [name for name in view.readable_fields if name in view.field_names]
    forms = {form.column: form for form in query.build_filter_forms()}
    columns = [_build_column(query, name, forms.pop(name, None)) for name in names]
    removed: dict[str, list[str]] = {}
    for column in columns:
        if column.left_out:
            removed.setdefault(column.left_out, []).append(column.name)
    return {
        "columns": columns,
        "removed": removed,
        "other_forms": list(forms.values()),
        # `fields` may leave out the id of the parent, which the address of the list names.
        "rows": [[_build_cell(request, own_path, {**view.kwargs, **row}, name) for name in row] for row in rows],
    }


def _build_column(query: ListQuery, name: str, form: FilterForm | None) -> Column:
    if name not in query.view.sortable:
        return Column(name, form=form)
    is_sorted = query.sort == name
    left_out = query.find_left_out(name)
    order = "desc" if is_sorted and not query.descends else "asc"
    address = query.build_address(left_out, sort=name, order=order)
    direction = ("descending" if query.descends else "ascending") if is_sorted else ""
    return Column(name, address, direction, ", ".join(left_out), form)


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
    return Cell(_to_text(value), build_address(request, path) if has_route(path) else "", width="narrow")


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
