"""Success responses: representations, their envelope, and what `fields` and `envelope=false` leave of them."""

from collections.abc import Sequence

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from config.api.listing.pagination import MAX_LIMIT
from config.api.representation.links import LINKS
from config.api.schema.fields import PATH, JSONObject, build_integer, build_object, build_string
from config.api.viewsets import ResourceViewSet
from config.http.request_limits import MAX_TARGET

_LINK = {"$ref": "#/components/schemas/Link"}
# Longer than a request target: the query that a page's links repeat is percent-encoded.
_HREF = build_string(32_768, PATH)
_CURSOR = {"type": ["string", "null"], "maxLength": MAX_TARGET, "pattern": "^[A-Za-z0-9_=-]+$"}
SCHEMAS: JSONObject = {
    "Link": build_object(
        {"href": _HREF, "method": {"enum": ["POST", "PUT", "DELETE"], "description": "GET when it is not told."}},
        optional=("method",),
    ),
    "PageLinks": build_object(
        dict.fromkeys(("self", "first", "prev", "next", "last"), _LINK), optional=("prev", "next", "last")
    ),
    "PageMeta": build_object(
        {
            # Unbounded: the requested page number is repeated, also one beyond 64 bits.
            "page": {"type": "integer", "minimum": 1},
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
_PAGE: JSONObject = {
    "meta": {"anyOf": [{"$ref": "#/components/schemas/PageMeta"}, {"$ref": "#/components/schemas/CursorMeta"}]},
    LINKS: {"$ref": "#/components/schemas/PageLinks"},
}


def build_any_of(*schemas: JSONObject) -> JSONObject:
    return {"anyOf": list(schemas)}


def build_envelope(data: JSONObject, **members: JSONObject) -> JSONObject:
    """The envelope of a success response.

    Args:
        data: the schema of `data`.
        members: the schemas of the members beside it.

    Returns:
        The schema of the envelope.
    """
    return build_object({"success": {"const": True}, "data": data, **members})


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
        self._name = self._serializer.Meta.model.__name__
        self._properties = properties
        self._registry = registry

    def build_single(self, *, created: bool) -> JSONObject:
        """The schema of a response with one resource.

        Args:
            created: whether it is the response that created the resource, which alone shows its `shown_once` fields.

        Returns:
            The schema, which refers to the registered components.
        """
        properties = self._get_properties(created=created)
        prefix = "New" if created and self._serializer.shown_once else ""
        links = build_object(dict.fromkeys(self._links, _LINK), self._links)
        whole = self._register(f"{prefix or 'Single'}{self._name}", build_object({**properties, LINKS: links}))
        part = self._register_part(prefix, properties)
        enveloped = self._register(f"{prefix}{self._name}Answer", build_envelope(build_any_of(whole, part)))
        return build_any_of(enveloped, whole, part)

    def build_page(self) -> JSONObject:
        """The schema of a response with a page of the list."""
        properties = self._get_properties(created=False)
        whole = self._register(self._name, build_object(properties), type(self._serializer))
        item = build_any_of(whole, self._register_part("", properties))
        items = {"type": "array", "items": item, "maxItems": MAX_LIMIT}
        enveloped = self._register(f"{self._name}Page", build_envelope(items, **_PAGE))
        return build_any_of(enveloped, items)

    def _get_properties(self, *, created: bool) -> JSONObject:
        hidden: Sequence[str] = () if created else self._serializer.shown_once
        return {name: schema for name, schema in self._properties.items() if name not in hidden}

    def _register_part(self, prefix: str, properties: JSONObject) -> JSONObject:
        description = "The fields that `fields` names."
        part = build_object(properties, tuple(properties), minProperties=1, description=description)
        del part["required"]
        return self._register(f"{prefix}{self._name}Part", part)

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
