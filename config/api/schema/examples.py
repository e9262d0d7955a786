"""Examples of requests and responses, which a serializer makes from the values that it declares as its example."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from rest_framework.serializers import ListSerializer, Serializer

from config.api.listing.pagination import DEFAULT_LIMIT, build_page
from config.api.representation import envelope
from config.api.representation.envelope import LINKS
from config.api.versions.table import Change, Version, has
from config.api.viewsets import ResourceViewSet
from config.http.json import JSONObject, to_json

_IDS = {"user_id": 42, "post_id": 17, "api_key_id": 3, "webhook_id": 9, "delivery_id": 31}


def build_request_example(serializer: Any, version: Version, method: str) -> JSONObject | None:
    """A body that can be sent as it is: the required fields, and of a PATCH one field.

    Args:
        serializer: the serializer of the body, or its class; None for no body.
        version: the version of the operation.
        method: its HTTP method.

    Returns:
        The body; None where the serializer declares no example.
    """
    instance = _instantiate(serializer)
    shown = _represent(instance, version)
    if shown is None:
        return None
    shown = {**instance.example, **shown}
    body = {
        name: shown[name]
        for name, field in instance.fields.items()
        if not field.read_only and not getattr(field, "unchanged_if_absent", False) and name in instance.example
    }
    return dict(list(body.items())[:1]) if method == "PATCH" else body


def build_resource_example(view: ResourceViewSet, version: Version, path: str, status: int) -> JSONObject | None:
    """The response with a resource, or with a page that contains it.

    Args:
        view: the view of the operation.
        version: the version of the operation.
        path: its path, with variables.
        status: the status of the response.

    Returns:
        The body; None where the serializer declares no example.
    """
    serializer = view.get_serializer()
    shown = _represent(serializer, version)
    if shown is None:
        return None
    if status != 201:
        shown = {name: value for name, value in shown.items() if name not in serializer.shown_once}
    if view.action != "list":
        return envelope.single({**shown, LINKS: _build_links(view, version, serializer.example)})
    # The answer to the path alone, where there is one row: the version says how it is paged.
    path = path.format(**_IDS)
    if has(version, Change.CURSOR_BY_DEFAULT):
        meta: JSONObject = {"nextCursor": None, "prevCursor": None, "hasMore": False}
        links = {"self": {"href": path}, "first": {"href": f"{path}?cursor="}}
    else:
        meta = {"page": 1, "limit": DEFAULT_LIMIT, "total": 1, "totalPages": 1}
        links = {"self": {"href": path}} | {name: {"href": f"{path}?page=1"} for name in ("first", "last")}
    return build_page([shown], meta, links)


def build_response_example(serializer: Any, version: Version) -> JSONObject | None:
    """The response of an endpoint that is no resource.

    Args:
        serializer: what the endpoint declares as its response: a serializer or the class of one, a schema, or one of
            them by its status, and by its media type where that is not JSON.
        version: the version of the operation.

    Returns:
        The body; None where no serializer with an example is declared.
    """
    if isinstance(serializer, dict):
        ((declared_for, serializer),) = serializer.items()
        if isinstance(declared_for, tuple):
            return _represent(_instantiate(serializer), version)
    instance = _instantiate(serializer)
    many = isinstance(instance, ListSerializer)
    shown = _represent(instance.child if many else instance, version)
    return shown and envelope.single([shown] if many else shown)


def _instantiate(serializer: Any) -> Any:
    return serializer() if isinstance(serializer, type) else serializer


def _build_links(view: ResourceViewSet, version: Version, declared: Mapping[str, object]) -> JSONObject:
    row = SimpleNamespace(**declared)
    return {
        link.rel: {"href": f"/api/v{version}{link.path.format(row)}"}
        | ({} if link.method == "GET" else {"method": link.method})
        for link in view.links
    }


def _represent(serializer: Any, version: Version) -> JSONObject | None:
    """The example of a serializer; None for one without, and for what is none."""
    declared: Mapping[str, object] = getattr(serializer, "example", {})
    if not declared or not isinstance(serializer, Serializer):
        return None
    serializer.context["version"] = version
    # The example of a serializer that is only for requests cannot be represented.
    is_shown = all(field.write_only or field.source in declared for field in serializer.fields.values())
    return json.loads(to_json(serializer.to_representation(declared) if is_shown else declared))
