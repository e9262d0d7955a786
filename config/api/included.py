"""`?include=`: related resources in addition to the data of a response, once each.

What is related is what the links of a resource lead to: a resource, or a collection of which the beginning is shown.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from rest_framework.response import Response

from config.api.listing.cursors import CursorPosition, build_binding, seal_cursor
from config.api.listing.query import INCLUDE
from config.api.permissions import require_scope
from config.api.representation.envelope import LINKS, Link, build_address
from config.api.views import ConventionsMixin
from config.http.url_map import find_view

# Per collection.
MAX_INCLUDED = 20
_COLUMN = re.compile(r"\{0\.(\w+)\}")


class Relation(NamedTuple):
    """The target of a resource's link.

    Attributes:
        column: of the resource, which fills in the address.
        view_class: that of the address.
        is_list: whether it is a collection.
    """

    link: Link
    column: str
    view_class: Any
    is_list: bool


@cache
def get_relations(view_class: Any) -> Mapping[str, Relation]:
    """The relations of a viewset's resources, by name."""
    links = [link for link in view_class.links if link.method == "GET" and link.rel != "self"]
    return {link.rel: _find_relation(link) for link in links}


def _find_relation(link: Link) -> Relation:
    (column,) = _COLUMN.findall(link.path)
    view: Any = find_view(link.path.format(SimpleNamespace(**{column: 0})))
    return Relation(link, column, view.cls, view.actions.get("get") == "list")


def get_names(view: Any) -> list[str]:
    """The names that a request may include; a list has no collections of each of its resources."""
    relations = get_relations(view.__class__)
    return [name for name, relation in relations.items() if view.action == "retrieve" or not relation.is_list]


def fetch_related(view: Any, relation: Relation, rows: Sequence[Any]) -> dict[str, Any]:
    """What rows are related to, as its list shows it to the caller of a view."""
    related = relation.view_class(action="list", request=view.request, principal=view.principal)
    if relation.is_list:
        (row,) = rows
        return _fetch_beginning(related, relation, row)
    ids = {getattr(row, relation.column) for row in rows}
    if not ids:
        return {"data": []}
    found = related.get_queryset().filter(pk__in=ids).order_by("pk")
    return {"data": related.represent(list(related.with_related(found, related.field_names, single=False)))}


def _fetch_beginning(related: Any, relation: Relation, row: Any) -> dict[str, Any]:
    related.parent_id = getattr(row, relation.column)
    first = related.get_queryset().order_by("pk")[: MAX_INCLUDED + 1]
    found = list(related.with_related(first, related.field_names, single=False))
    included: dict[str, Any] = {"data": related.represent(found[:MAX_INCLUDED])}
    if len(found) > MAX_INCLUDED:
        path = relation.link.path.format(row)
        position = CursorPosition(">", (found[MAX_INCLUDED - 1].pk,))
        cursor = seal_cursor(position, build_binding(("list", path), ("sort", "id"), ("order", "asc")))
        address = build_address(related.request, path)
        included[LINKS] = {"next": {"href": f"{address}{'&' if '?' in address else '?'}cursor={cursor}"}}
    return included


class IncludeMixin(ConventionsMixin):
    """What a viewset does with `?include=`.

    Attributes:
        included: the names that the request includes.
    """

    included: Sequence[str] = ()

    def parse_include(self: Any) -> None:
        """Reads what the request includes. What is wrong with it is refused in the parameters.

        Raises:
            DomainError: INSUFFICIENT_SCOPE.
        """
        parameters, known = self.parameters, get_names(self)
        value = parameters.get(INCLUDE) if known and INCLUDE in parameters.query else None
        if value is None:
            return
        names = value.split(",")
        if unknown := [name for name in names if name not in known]:
            shown = ", ".join(dict.fromkeys(unknown)) or "an empty name"
            parameters.refuse(INCLUDE, f"Cannot be included here: {shown}. Available: {', '.join(known)}.")
            return
        if len({*names}) < len(names):
            parameters.refuse(INCLUDE, "Must not repeat a value.")
        if not self.enveloped:
            parameters.refuse(INCLUDE, "Requires the envelope. Omit envelope=false.")
        relations = get_relations(self.__class__)
        for name in names:
            if scope := relations[name].link.scope:
                require_scope(self.principal, scope)
        self.included = names

    def include(self: Any, response: Response, rows: Sequence[Any]) -> Response:
        """The response with the related resources that the request includes; one statement for each name."""
        if self.included:
            relations = get_relations(self.__class__)
            response.data["included"] = {name: fetch_related(self, relations[name], rows) for name in self.included}
        return response
