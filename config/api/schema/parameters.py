"""What a request may say beside its body: path, query and headers."""

from typing import Any

from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT
from config.api.schema.fields import REQUEST_ID, integer, text
from config.api.viewsets import ResourceViewSet, readable_fields
from config.api.writing import idempotency
from config.api.writing.idempotency import KeyPolicy
from config.http.request_limits import MAX_HEADER, MAX_TARGET
from config.models.resource import LONGEST_KEY

_BARE_KEY, _QUOTED_KEY = idempotency.BARE_KEY.pattern, idempotency.QUOTED_KEY.pattern
# With a backslash before each of its characters.
_LONGEST_QUOTED_KEY = 2 * LONGEST_KEY + len('""')
_TAGS = r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'


def _query(name: str, schema: dict[str, Any], description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema, **more}


def _header(name: str, schema: dict[str, Any], description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": schema, **more}


_KEY = {
    "name": idempotency.HEADER,
    "schema": text(_LONGEST_QUOTED_KEY, f"^({_BARE_KEY}|{_QUOTED_KEY})$", minLength=1),
    "description": "A key of your own, new for each thing to make: a retry with it gets the first answer.",
    "example": "invoice-4711",
}
COMPONENTS: dict[str, Any] = {
    "page": _query("page", integer(1), "Page from 1, instead of `offset` and `cursor`."),
    "offset": _query("offset", integer(0), "Items to skip, instead of `page` and `cursor`."),
    "cursor": _query(
        "cursor",
        text(MAX_TARGET, "^[A-Za-z0-9_=-]*$"),
        "Place in the list, instead of `page` and `offset`; empty starts.",
        allowEmptyValue=True,
    ),
    "limit": _query(
        "limit", integer(1, MAX_LIMIT, default=DEFAULT_LIMIT), f"Page size; above {MAX_LIMIT}, {MAX_LIMIT} is used."
    ),
    "order": _query("order", {"type": "string", "enum": ["asc", "desc"], "default": "asc"}, "Direction of the sort."),
    "envelope": _query(
        "envelope",
        {"type": "boolean", "default": True},
        "`false` answers the bare `data`; a list then tells its links in `Link` and its total in `X-Total-Count`.",
    ),
    "If-None-Match": _header(
        "If-None-Match", text(MAX_HEADER, _TAGS), "The tag of what one has: 304 when it is still the same."
    ),
    "If-Match": _header("If-Match", text(MAX_HEADER, _TAGS), "The tag of what one has: 412 when it has changed since."),
    "X-Request-Id": _header("X-Request-Id", REQUEST_ID, "Comes back as `Request-Id`, and stands in the log."),
    "Idempotency-Key": {**_KEY, "in": "header", "required": False},
    "Idempotency-Key-required": {**_KEY, "in": "header", "required": True},
}


def refer(*names: str) -> list[dict[str, Any]]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def of_path(names: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "description": _whose(name), "schema": integer(1)}
        for name in names
    ]


def _whose(name: str) -> str:
    return f"The id of the {'resource' if name == 'id' else name.removesuffix('_id').replace('_', ' ')}."


def of_operation(view: Any, method: str, variables: list[str]) -> list[dict[str, Any]]:
    """All parameters of an operation of a DRF view."""
    found = of_path(variables)
    if isinstance(view, ResourceViewSet):
        found += _of_list(view) if view.action == "list" else []
        found += [_fields(view)] if method != "DELETE" else []
    if view.names_version:
        found.append(_query("version", text(10, "^[0-9]+$"), "The version to describe, instead of the default."))
    if method != "DELETE" and view.envelope_known:
        found += refer("envelope")
    if method == "GET":
        found += refer("If-None-Match")
    if method in {"PUT", "PATCH", "DELETE"}:
        found += refer("If-Match")
    if method == "POST" and isinstance(view, ResourceViewSet):
        found += {
            KeyPolicy.REQUIRED: refer("Idempotency-Key-required"),
            KeyPolicy.HONOURED: refer("Idempotency-Key"),
        }.get(view.idempotency, [])
    return [*found, *refer("X-Request-Id")]


def _fields(view: ResourceViewSet) -> dict[str, Any]:
    names = readable_fields(view.serializer_class)
    one = f"({'|'.join(names)})"
    longest = len(",".join(names))
    return _query(
        "fields", text(longest, f"^{one}(,{one})*$"), "Comma-separated names of the fields to answer, each once."
    )


def _of_list(view: ResourceViewSet) -> list[dict[str, Any]]:
    sortable = {"type": "string", "enum": list(view.sortable), "default": "id"}
    return [
        *refer("page", "offset", "cursor", "limit"),
        _query("sort", sortable, "The field to sort by; `id` breaks ties."),
        *refer("order"),
        *(
            _query(
                name,
                {"type": "string", "enum": [value for value, _ in one.extra["choices"]]}
                if "choices" in one.extra
                else text(254, minLength=1),
                f"Only those with this {name}.",
            )
            for name, one in view.filterset_class.base_filters.items()
        ),
    ]
