"""Examples of requests and answers, each what the serializer makes of the values that it declares as its example."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from rest_framework.serializers import BaseSerializer, ListSerializer

from config.api.listing.pagination import DEFAULT_LIMIT
from config.api.representation import envelope
from config.api.representation.renderers import to_json
from config.api.viewsets import ResourceViewSet

_IDS = {"user_id": 42, "post_id": 17, "api_key_id": 3}


def _instance(serializer: Any, view: Any) -> Any:
    made = serializer() if isinstance(serializer, type) else serializer
    made.context["version"] = view.described_version
    return made


def _plain(value: Any) -> Any:
    return json.loads(to_json(value))


def of_request(serializer: Any, view: Any, method: str) -> Any:
    """A body that can be sent as it is: what one must give, and of a PATCH one field."""
    if serializer is None:
        return None
    made = _instance(serializer, view)
    declared = getattr(made, "example", None)
    if not declared:
        return None
    shown = _representation(made, declared)
    given = {
        name: shown.get(name, declared.get(name))
        for name, field in made.fields.items()
        if not field.read_only and not getattr(field, "kept", False) and name in declared
    }
    return dict(list(given.items())[:1]) if method == "PATCH" else given


def of_answer(view: ResourceViewSet, path: str, status: int) -> Any:
    """The representation of a resource, or a page that holds it."""
    serializer = _instance(view.get_serializer(), view)
    declared = serializer.example
    if not declared:
        return None
    shown = _representation(serializer, declared)
    if status != 201:
        shown = {name: value for name, value in shown.items() if name not in serializer.shown_once}
    prefix = f"/api/v{view.described_version}"
    if view.action != "list":
        row = SimpleNamespace(**declared)
        links = {
            link.rel: {"href": prefix + link.path.format(row)}
            | ({} if link.method == "GET" else {"method": link.method})
            for link in view.links
        }
        return envelope.single({**shown, envelope.LINKS: links})
    page = path.format(**_IDS)
    links = {
        "self": {"href": f"{page}?page=1"},
        "first": {"href": f"{page}?page=1"},
        "last": {"href": f"{page}?page=1"},
    }
    return envelope.page([shown], {"page": 1, "limit": DEFAULT_LIMIT, "total": 1, "totalPages": 1}, links)


def of_view(serializer: Any, view: Any) -> Any:
    """The answer of an endpoint that is no resource."""
    if not isinstance(serializer, BaseSerializer) and not isinstance(serializer, type):
        return None
    made = serializer() if isinstance(serializer, type) else serializer
    many = isinstance(made, ListSerializer)
    made = made.child if many else made
    declared = getattr(made, "example", None)
    if not declared:
        return None
    shown = _representation(made, declared)
    return envelope.single([shown] if many else shown)


def _representation(serializer: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
    missing = [
        name for name, field in serializer.fields.items() if not field.write_only and field.source not in declared
    ]
    if missing:
        # What is not declared is a request's alone.
        return {name: _plain(value) for name, value in declared.items()}
    return _plain(serializer.to_representation(declared))
