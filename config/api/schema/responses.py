"""Success responses: representations, and their envelope.

They are described as they are without `fields` and `envelope=false`, which leave out parts of them: their parameters
say so. A schema of every form, an `anyOf` in an `anyOf`, made clients that had to find out which one they got.
"""

from typing import Any

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from config.api.included import get_names, get_relations
from config.api.listing.bounded import MAX_COUNTED
from config.api.listing.cursors import CURSOR_CHARACTERS
from config.api.listing.pagination import MAX_LIMIT, MAX_POSITION
from config.api.representation.envelope import LINKS
from config.api.schema.fields import PATH, build_integer, build_object, build_string
from config.api.schema.views import is_later, takes_include
from config.api.viewsets import ResourceViewSet
from config.http.json import JSONObject
from config.http.request_limits import MAX_TARGET

_LINK = {"$ref": "#/components/schemas/Link"}
# Longer than a request target: the query that a page's links repeat is percent-encoded.
_HREF = build_string(32_768, PATH)
_CURSOR = {"type": ["string", "null"], "maxLength": MAX_TARGET, "pattern": f"^{CURSOR_CHARACTERS}+$"}
_LINK_METHOD = {"type": "string", "enum": ["POST", "PUT", "PATCH", "DELETE"], "description": "GET if omitted."}
# Null. openapi-generator has no type for that alone.
_UNKNOWN = build_integer() | {"type": ["integer", "null"]}
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
        description="With `page` or `offset`.",
    ),
    "CursorMeta": build_object(
        {"nextCursor": _CURSOR, "prevCursor": _CURSOR, "hasMore": {"type": "boolean"}},
        description="With `cursor`.",
    ),
    "BoundedPageMeta": build_object(
        {
            "page": build_integer(1, MAX_COUNTED),
            "limit": build_integer(1, MAX_LIMIT),
            "total": _UNKNOWN,
            "totalPages": _UNKNOWN,
            "totalAtLeast": build_integer(0, MAX_COUNTED),
        },
        description="With `page` or `offset`, if more items match the filters than are counted.",
    ),
    # For a dry run of an operation that returns 204.
    "NothingAnswer": build_object({"success": {"const": True}, "data": {"type": ["object", "null"]}}),
}


def build_envelope(data: JSONObject, **members: JSONObject) -> JSONObject:
    """The envelope of a success response.

    Args:
        data: the schema of `data`.
        members: the schemas of the other members.

    Returns:
        The schema of the envelope.
    """
    optional = ("included",) if "included" in members else ()
    return build_object({"success": {"const": True}, "data": data, **members}, optional)


def build_single(view: ResourceViewSet, properties: JSONObject, registry: ComponentRegistry, *, created: bool) -> Any:
    """The schema of a response with one resource, which refers to registered components.

    Args:
        view: the view of the operation.
        properties: the schema of each field in a response.
        registry: the components of the document.
        created: whether it is the response that created the resource, which alone shows its `shown_once` fields.
    """
    # Not `New`, which is how Go calls constructors.
    prefix = "Created" if created and view.get_serializer().shown_once else ""
    relations, name = [link.rel for link in view.links], _get_name(view)
    links = build_object(dict.fromkeys(relations, _LINK), tuple(relations))
    fields = {**_get_shown(view, properties, created=created), LINKS: links}
    whole = register_component(registry, f"{prefix or 'Single'}{name}", build_object(fields))
    if takes_include(view):
        answer = build_envelope(whole, included=_build_included(view))
        return register_component(registry, f"{prefix}{name}ReadAnswer", answer)
    return register_component(registry, f"{prefix}{name}Answer", build_envelope(whole))


def build_page(view: ResourceViewSet, properties: JSONObject, registry: ComponentRegistry) -> JSONObject:
    """The schema of a response with a page of the list. It takes the arguments of `build_single`."""
    row = build_object(_get_shown(view, properties, created=False))
    serializer_class = type(view.get_serializer())
    items = {
        "type": "array",
        "items": register_component(registry, _get_name(view), row, serializer_class),
        "maxItems": MAX_LIMIT,
    }
    is_bounded = is_later(view) and bool(view.filterset_class.later)
    metas = ("PageMeta", "CursorMeta", *(("BoundedPageMeta",) if is_bounded else ()))
    members: JSONObject = {
        "meta": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in metas]},
        LINKS: {"$ref": "#/components/schemas/PageLinks"},
    }
    if takes_include(view):
        members["included"] = _build_included(view)
    return register_component(registry, f"{_get_name(view)}Page", build_envelope(items, **members))


def _get_name(view: ResourceViewSet) -> str:
    # openapi-generator's Go has a type APIKey of its own.
    return view.get_serializer().Meta.model.__name__.replace("API", "Api")


def _get_shown(view: ResourceViewSet, properties: JSONObject, *, created: bool) -> JSONObject:
    hidden = () if created else view.get_serializer().shown_once
    return {name: schema for name, schema in properties.items() if name not in hidden}


def _build_included(view: Any) -> JSONObject:
    """The included resources by name, as their lists show them."""
    relations = get_relations(view.__class__)
    properties: JSONObject = {}
    for name in get_names(view):
        model = relations[name].view_class.serializer_class.Meta.model.__name__
        data = {"type": "array", "items": {"$ref": f"#/components/schemas/{model}"}, "maxItems": MAX_LIMIT}
        properties[name] = build_object({"data": data, LINKS: build_object({"next": _LINK})}, (LINKS,))
    return build_object(properties, tuple(properties), description="What `include` names.")


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
    return component.ref
