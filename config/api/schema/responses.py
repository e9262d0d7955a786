"""Success answers: representations, their envelope, and what is left of them for `fields` and `envelope=false`."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.plumbing import ResolvedComponent

from config.api.listing.pagination import MAX_LIMIT
from config.api.representation.envelope import LINKS
from config.api.schema.fields import PATH, closed, integer, text
from config.api.viewsets import ResourceViewSet
from config.http.request_limits import MAX_TARGET

Described = dict[str, Any]
_LINK = {"$ref": "#/components/schemas/Link"}
# A query is repeated in the links of its page, quoted.
_HREF = text(32_768, PATH)
_CURSOR = {"type": ["string", "null"], "maxLength": MAX_TARGET, "pattern": "^[A-Za-z0-9_=-]+$"}
SCHEMAS: Described = {
    "Link": closed(
        {"href": _HREF, "method": {"enum": ["POST", "PUT", "DELETE"], "description": "GET when it is not told."}},
        optional=("method",),
    ),
    "PageLinks": closed(
        dict.fromkeys(("self", "first", "prev", "next", "last"), _LINK), optional=("prev", "next", "last")
    ),
    "PageMeta": closed(
        {
            # Beyond 64 bits, too: whatever page is asked for is told.
            "page": {"type": "integer", "minimum": 1},
            "limit": integer(1, MAX_LIMIT),
            "total": integer(),
            "totalPages": integer(),
        },
        description="Of a page by `page` or `offset`.",
    ),
    "CursorMeta": closed(
        {"nextCursor": _CURSOR, "prevCursor": _CURSOR, "hasMore": {"type": "boolean"}},
        description="Of a page by `cursor`.",
    ),
}
_PAGE: Described = {
    "meta": {"anyOf": [{"$ref": "#/components/schemas/PageMeta"}, {"$ref": "#/components/schemas/CursorMeta"}]},
    LINKS: {"$ref": "#/components/schemas/PageLinks"},
}


def any_of(*schemas: Described) -> Described:
    return {"anyOf": list(schemas)}


def enveloped(data: Described, **more: Described) -> Described:
    return closed({"success": {"const": True}, "data": data, **more})


class Representations:
    """The components of one resource, as the view of an operation shows it.

    Args:
        schema: the AutoSchema of the operation, which maps serializers and keeps components.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._view: ResourceViewSet = schema.view
        self._serializer = self._view.get_serializer()
        self._name = self._serializer.Meta.model.__name__
        self._mapped = schema._map_serializer(self._serializer, "response")

    def single(self, *, made: bool) -> Described:
        """One resource; `made`: on the answer that made it, which may show what no other does."""
        shown = self._properties(made=made)
        once = made and self._serializer.shown_once
        prefix = "New" if once else ""
        links = closed({link.rel: _LINK for link in self._view.links}, tuple(link.rel for link in self._view.links))
        whole = self._component(f"{prefix or 'Single'}{self._name}", closed({**shown, LINKS: links}))
        part = self._part(prefix, shown)
        answer = self._component(f"{prefix}{self._name}Answer", enveloped(any_of(whole, part)))
        return any_of(answer, whole, part)

    def page(self) -> Described:
        shown = self._properties(made=False)
        whole = self._component(self._name, closed(shown), self._serializer.__class__)
        item = any_of(whole, self._part("", shown))
        items = {"type": "array", "items": item, "maxItems": MAX_LIMIT}
        answer = self._component(f"{self._name}Page", enveloped(items, **_PAGE))
        return any_of(answer, items)

    def _properties(self, *, made: bool) -> Described:
        hidden: Sequence[str] = () if made else self._serializer.shown_once
        return {name: schema for name, schema in self._mapped["properties"].items() if name not in hidden}

    def _part(self, prefix: str, shown: Described) -> Described:
        part = closed(shown, tuple(shown), minProperties=1, description="The fields that `fields` names.")
        del part["required"]
        return self._component(f"{prefix}{self._name}Part", part)

    def _component(self, name: str, schema: Described, identity: Any = None) -> Described:
        return component(self._schema.registry, name, schema, identity)


def component(registry: Any, name: str, schema: Described, identity: Any = None) -> Described:
    """A reference to a component, which is kept when there is none of that name yet."""
    made = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema, identity or name)
    registry.register_on_missing(made)
    return {"$ref": f"#/components/schemas/{name}"}
