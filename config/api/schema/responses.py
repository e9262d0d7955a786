"""Success responses: representations, and their envelope.

They are described as they are without `fields` and `envelope=false`, which leave out parts of them: their parameters
say so. A schema of every form, an `anyOf` in an `anyOf`, made clients that had to find out which one they got.
"""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from config.api.included import get_names, get_relations
from config.api.listing.bounded import MAX_COUNTED
from config.api.listing.pagination import MAX_LIMIT, MAX_POSITION
from config.api.representation.envelope import LINKS
from config.api.schema.fields import PATH, build_integer, build_object, build_string
from config.api.schema.views import takes_include
from config.api.versions.table import Change, has
from config.api.viewsets import ResourceViewSet
from config.http.json import MAX_LINES, JSONObject
from config.http.request_limits import MAX_TARGET

_LINK = {"$ref": "#/components/schemas/Link"}
# Longer than a request target: the query that a page's links repeat is percent-encoded.
_HREF = build_string(32_768, PATH)
_CURSOR = {"type": ["string", "null"], "maxLength": MAX_TARGET, "pattern": "^[A-Za-z0-9_=-]+$"}
_LINK_METHOD = {"type": "string", "enum": ["POST", "PUT", "DELETE"], "description": "GET when it is not told."}
SCHEMAS: JSONObject = {
    "Link": build_object({"href": _HREF, "method": _LINK_METHOD}, optional=("method",)),
    "PageLinks": build_object(
        dict.fromkeys(("self", "first", "prev", "next", "last"), _LINK), optional=("prev", "next", "last")
    ),
    "PageMeta": build_object(
        {
            "page": build_integer(1, MAX_POSITION),
            "limit": build_integer(1, MAX_LIMIT),
            "total": build_integer(),
            "totalPages": build_integer(),
        },
        description="Of a page by `page` or `offset`.",
    ),
    "CursorMeta": build_object(
        {"nextCursor": _CURSOR, "prevCursor": _CURSOR, "hasMore": {"type": "boolean"}},
        description="Of a page by `cursor`.",
    ),
}
_METAS = [{"$ref": "#/components/schemas/PageMeta"}, {"$ref": "#/components/schemas/CursorMeta"}]
_PAGE_LINKS: JSONObject = {LINKS: {"$ref": "#/components/schemas/PageLinks"}}
# Null. openapi-generator has no type for that alone.
_UNKNOWN = build_integer() | {"type": ["integer", "null"]}
_BOUNDED_META = build_object(
    {
        "page": build_integer(1, MAX_COUNTED),
        "limit": build_integer(1, MAX_LIMIT),
        "total": _UNKNOWN,
        "totalPages": _UNKNOWN,
        "totalAtLeast": build_integer(0, MAX_COUNTED),
    },
    description="Of a page by `page` or `offset` of a list with more rows than are counted under its filters.",
)


def build_envelope(data: JSONObject, **members: JSONObject) -> JSONObject:
    """The envelope of a success response.

    Args:
        data: the schema of `data`.
        members: the schemas of the members beside it.

    Returns:
        The schema of the envelope.
    """
    optional = ("included",) if "included" in members else ()
    return build_object({"success": {"const": True}, "data": data, **members}, optional)


class ResourceSchemas:
    """Registers the components of one resource, as the view of an operation represents it.

    Args:
        view: the view of the operation.
        properties: the schema of each field in a response.
        registry: the components of the document.
    """

    def __init__(self, view: ResourceViewSet, properties: JSONObject, registry: ComponentRegistry) -> None:
        self._serializer = view.get_serializer()
        self._links = tuple(link.rel for link in view.links)
        # openapi-generator's Go has a type APIKey of its own.
        self._name = self._serializer.Meta.model.__name__.replace("API", "Api")
        self._properties = properties
        self._registry = registry
        described: Any = view
        has_later = has(described.described_version, Change.NO_UNKNOWN_NAMES)
        self._view = view
        self._includes = takes_include(described)
        self._is_bounded = has_later and bool(view.filterset_class.later)

    def build_single(self, *, created: bool) -> JSONObject:
        """The schema of a response with one resource.

        Args:
            created: whether it is the response that created the resource, which alone shows its `shown_once` fields.

        Returns:
            The schema, which refers to the registered components.
        """
        properties = self._get_properties(created=created)
        # Not `New`, which is how Go calls constructors.
        prefix = "Created" if created and self._serializer.shown_once else ""
        links = build_object(dict.fromkeys(self._links, _LINK), self._links)
        whole = self._register(f"{prefix or 'Single'}{self._name}", build_object({**properties, LINKS: links}))
        if self._includes:
            members = {"included": self._build_included()}
            return self._register(f"{prefix}{self._name}ReadAnswer", build_envelope(whole, **members))
        return self._register(f"{prefix}{self._name}Answer", build_envelope(whole))

    def build_row(self) -> JSONObject:
        """The schema of a row of the list."""
        properties = self._get_properties(created=False)
        return self._register(self._name, build_object(properties), type(self._serializer))

    def build_page(self) -> JSONObject:
        """The schema of a response with a page of the list."""
        items = {"type": "array", "items": self.build_row(), "maxItems": MAX_LIMIT}
        metas = [*_METAS, self._register("BoundedPageMeta", _BOUNDED_META)] if self._is_bounded else _METAS
        members = {"meta": {"anyOf": metas}, **_PAGE_LINKS}
        if self._includes:
            members["included"] = self._build_included()
        return self._register(f"{self._name}Page", build_envelope(items, **members))

    def build_lines(self) -> JSONObject:
        """The schema of a response that tells what became of each line.

        It is no component, since nothing that a generator looks at would refer to it.
        """
        properties = {
            "line": build_integer(1, MAX_LINES),
            "status": build_integer(201, 599),
            "data": self.build_row(),
            "error": {"$ref": "#/components/schemas/ErrorBody"},
        }
        description = "What became of a line: it has `data`, or `error`."
        line = build_object(properties, ("data", "error"), description=description)
        meta = build_object({"created": build_integer(0, MAX_LINES)})
        items = {"type": "array", "items": line, "minItems": 1, "maxItems": MAX_LINES}
        return build_envelope(items, meta=meta)

    def _build_included(self) -> JSONObject:
        """What is included, by name: resources as their lists show them."""
        view_class: Any = type(self._view)
        relations = get_relations(view_class)
        properties: JSONObject = {}
        for name in get_names(self._view):
            model = relations[name].view_class.serializer_class.Meta.model.__name__
            data = {"type": "array", "items": {"$ref": f"#/components/schemas/{model}"}, "maxItems": MAX_LIMIT}
            following = build_object({"next": _LINK})
            properties[name] = build_object({"data": data, LINKS: following}, (LINKS,))
        return build_object(properties, tuple(properties), description="What `include` names.")

    def _get_properties(self, *, created: bool) -> JSONObject:
        hidden: Sequence[str] = () if created else self._serializer.shown_once
        return {name: schema for name, schema in self._properties.items() if name not in hidden}

    def _register(self, name: str, schema: JSONObject, identity: object = None) -> JSONObject:
        return register_component(self._registry, name, schema, identity)


def register_component(
    registry: ComponentRegistry, name: str, schema: JSONObject, identity: object = None
) -> JSONObject:
    """Registers a schema as a component, unless one of that name is registered.

    Args:
        registry: the components of the document.
        name: the name of the component.
        schema: its schema.
        identity: what drf-spectacular tells equal names apart by; the name itself if None.

    Returns:
        A reference to the component.
    """
    component = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema, identity or name)
    registry.register_on_missing(component)
    return {"$ref": f"#/components/schemas/{name}"}
