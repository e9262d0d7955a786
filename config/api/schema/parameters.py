"""The parameters of operations: path, query and headers."""

from collections.abc import Sequence
from typing import Any

from config.api import included
from config.api.bulk import PARTIAL
from config.api.listing.cursors import CURSOR_CHARACTERS
from config.api.listing.filters import (
    BOUNDS,
    MAX_SEARCH,
    MAX_VALUES,
    MONEY_PATTERN,
    TIME_PATTERN,
    BoundFilter,
    IdsFilter,
    SearchFilter,
    TimeField,
    WholeNumberField,
)
from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT, MAX_POSITION
from config.api.listing.query import INCLUDE
from config.api.representation.envelope import LINKS
from config.api.schema.fields import MAX_TIME_LENGTH, TOKEN, build_integer, build_string
from config.api.schema.views import has_conditions, is_later, is_list, takes_dry_run, takes_include, takes_lines
from config.api.viewsets import ResourceViewSet
from config.api.writing import idempotency
from config.api.writing.idempotency import KeyPolicy
from config.http.json import JSONObject
from config.http.middleware import MAX_REQUEST_ID_LENGTH
from config.http.request_limits import MAX_HEADER, MAX_TARGET
from config.models import MAX_KEY_LENGTH
from config.postgresql.words import MAX_WORDS

_BARE_KEY, _QUOTED_KEY = idempotency.BARE_KEY.pattern, idempotency.QUOTED_KEY.pattern
# Each character may be escaped by a backslash.
_MAX_QUOTED_KEY = 2 * MAX_KEY_LENGTH + len('""')
_ONE_OF = "Returns only items whose `{}` is one of these values, separated by commas."
_SEARCH = (
    "Returns only items in which each word of `q` is the start of a word in {}, ignoring case and accents. "
    f"At most {MAX_WORDS} words. If many items match, a page can have fewer items than `limit`, or none, while "
    "`hasMore` is true."
)
_ENTITY_TAGS = r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'


def build_parameter(
    name: str, schema: JSONObject, description: str, where: str = "query", **more: object
) -> JSONObject:
    return {"name": name, "in": where, "description": description, "schema": schema, **more}


_KEY = build_parameter(
    idempotency.HEADER,
    build_string(_MAX_QUOTED_KEY, f"^({_BARE_KEY}|{_QUOTED_KEY})$", minLength=1),
    "A unique key of your own. Retrying with the same key has no further effect.",
    "header",
    required=False,
)
_FLAG = {"type": "boolean"}
# Defaults are in the descriptions: the reference would send a schema's `default`, or a parameter's `example`.
_SHARED = (
    build_parameter(
        "page", build_integer(1, MAX_POSITION), "Page number, from 1. Cannot be combined with `offset` or `cursor`."
    ),
    build_parameter(
        "offset", build_integer(0, MAX_POSITION), "Items to skip. Cannot be combined with `page` or `cursor`."
    ),
    build_parameter(
        "cursor",
        build_string(MAX_TARGET, f"^{CURSOR_CHARACTERS}*$"),
        "A `nextCursor` or `prevCursor`. Empty or omitted: the first page. Cannot be combined with `page` or `offset`.",
        allowEmptyValue=True,
    ),
    build_parameter(
        "limit",
        build_integer(1, MAX_LIMIT),
        f"Items per page. Default {DEFAULT_LIMIT}, maximum {MAX_LIMIT}. A larger value counts as {MAX_LIMIT}.",
    ),
    build_parameter("order", {"type": "string", "enum": ["asc", "desc"]}, "Sort direction. Default `asc`."),
    build_parameter(
        "envelope",
        _FLAG,
        "`false` returns the value of `data` without the envelope around it.",
    ),
    build_parameter(
        "dry_run",
        _FLAG,
        "`true` checks the request and changes nothing. A request that would succeed gets 200 with `Dry-Run: true`; "
        "any other request gets its error.",
    ),
    build_parameter(
        PARTIAL,
        _FLAG,
        "NDJSON only. `true` creates the valid lines and returns 207. Without it, all lines are created or none.",
    ),
    *(
        build_parameter(name, build_string(MAX_HEADER, _ENTITY_TAGS), f"The `ETag` that you have. {meaning}", "header")
        for name, meaning in {
            "If-None-Match": "If it still matches, returns 304 without a body.",
            "If-Match": "If it no longer matches, returns 412.",
        }.items()
    ),
    build_parameter(
        "X-Request-Id",
        # No pattern: a value of another form is replaced, and not refused.
        {"type": "string", "maxLength": MAX_HEADER},
        "Returned as `Request-Id` and logged. Has 1 to "
        f"{MAX_REQUEST_ID_LENGTH} of the characters `A-Za-z0-9._~-`; any other value is replaced.",
        "header",
    ),
    _KEY,
)
_PARAMETERS = {parameter["name"]: parameter for parameter in _SHARED}
COMPONENTS: JSONObject = {
    **_PARAMETERS,
    "envelope-list": {
        **_PARAMETERS["envelope"],
        "description": "`false` returns the array in `data` without the envelope around it. `Link` then has the links.",
    },
    "Idempotency-Key-lines": {**_KEY, "description": f"NDJSON only; ignored with JSON. {_KEY['description']}"},
    "Idempotency-Key-required": {**_KEY, "required": True, "example": "8e03978e-40d5-43e8-bc93-6894a57f9324"},
}
_IDEMPOTENCY_KEYS = {KeyPolicy.REQUIRED: "Idempotency-Key-required", KeyPolicy.HONOURED: "Idempotency-Key"}


def build_references(*names: str) -> list[JSONObject]:
    """References to parameter components."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def build_parameters(view: Any, method: str, path_variables: Sequence[str]) -> list[JSONObject]:
    """All parameters of an operation.

    Args:
        view: the view of the operation.
        method: its HTTP method.
        path_variables: the variables of its path, in their order there.

    Returns:
        The `parameters` of the operation.
    """
    own = {each["name"]: each for each in view.own_parameters if each.get("in") == "path"}
    parameters = [own.get(name) or _build_path_parameter(view, name) for name in path_variables]
    if isinstance(view, ResourceViewSet):
        parameters += _build_list_parameters(view) if view.action == "list" else []
        parameters += [_build_fields_parameter(view)] if method != "DELETE" else []
        if takes_include(view):
            names = {"type": "string", "enum": included.get_names(view)}
            description = "The related resources to return under `included`, separated by commas."
            parameters.append(build_list_parameter(INCLUDE, names, description))
    if method == "GET":
        parameters += [each for each in view.own_parameters if each.get("in") != "path"]
    if view.names_version:
        description = "The version to describe. Default: the service's default version."
        parameters.append(build_parameter("version", build_string(10, "^[0-9]+$"), description))
    return parameters + build_references(*_get_shared_names(view, method), "X-Request-Id")


def _get_shared_names(view: Any, method: str) -> list[str]:
    """The components that an operation has by its method."""
    has_links = method == "GET" and (is_list(view) or LINKS in view.own_members)
    names = ["envelope-list" if has_links else "envelope"] if method != "DELETE" and view.envelope_known else []
    if takes_dry_run(view, method):
        names.append("dry_run")
    if takes_lines(view, method):
        return [*names, PARTIAL, _IDEMPOTENCY_KEYS.get(view.idempotency, "Idempotency-Key-lines")]
    if has_conditions(view, method):
        names += ["If-None-Match", "If-Match"] if method == "GET" else ["If-Match"]
    elif isinstance(view, ResourceViewSet) and view.idempotency in _IDEMPOTENCY_KEYS:
        names.append(_IDEMPOTENCY_KEYS[view.idempotency])
    return names


def _build_path_parameter(view: Any, name: str) -> JSONObject:
    if name == "token":
        return build_parameter(name, build_string(256, TOKEN), "The token of a mailed link.", "path", required=True)
    own = view.queryset.model._meta.verbose_name if name == "id" else ""
    target = own or name.removesuffix("_id").replace("_", " ").replace("api", "API")
    description = f"The ID of the {target}."
    return build_parameter(name, build_integer(1), description, "path", required=True)


def _build_fields_parameter(view: ResourceViewSet) -> JSONObject:
    names = view.readable_fields
    name = f"({'|'.join(names)})"
    schema = build_string(len(",".join(names)), f"^{name}(,{name})*$")
    return build_parameter(
        "fields",
        schema,
        f"The fields to return, separated by commas. All other fields{'' if is_list(view) else ' and `_links`'} are "
        "omitted.",
    )


def _build_list_parameters(view: ResourceViewSet) -> list[JSONObject]:
    sortable = {"type": "string", "enum": list(view.sortable)}
    default, filterset = "Default: `id`.", view.filterset_class
    if is_later(view) and len(view.sortable) > 1:
        filters = filterset.base_filters
        few = " or ".join(f"`{name}`" for name, one in filters.items() if getattr(one, "is_small", False))
        default = (
            "Default: `id`, or the field of the range filters. All range filters (such as `created_at[gte]`) must be "
            "on one field, and the list can be sorted only by this field. "
            f"Neither rule applies if you also give exact values of {few}."
        )
    return [
        *build_references("page", "offset", "cursor", "limit"),
        build_parameter("sort", sortable, f"The field to sort by. {default} Equal values are sorted by `id`."),
        *build_references("order"),
        *(_build_filter_parameter(view, name) for name in filterset.first),
        *(_build_filter_parameter(view, name) for name in filterset.later if is_later(view)),
    ]


def _build_filter_parameter(view: ResourceViewSet, name: str) -> JSONObject:
    declared = view.filterset_class.base_filters[name]
    description = declared.extra.get("help_text") or f"Returns only items with this `{name}`."
    match declared:
        case IdsFilter():
            whose = " Requires the role `support` or `admin`." if name in view.staff_filters else ""
            return build_list_parameter(name, build_integer(1), _ONE_OF.format(name) + whose)
        case SearchFilter():
            schema = build_string(MAX_SEARCH, minLength=1)
            description = _SEARCH.format(" or ".join(f"`{column}`" for column in declared.columns))
        case BoundFilter():
            schema = _build_bound(declared.field)
            bound = f"`{declared.field_name}` is {BOUNDS[declared.lookup_expr]}"
            description = f"Range filter: returns only items whose {bound}."
        case _ if "choices" in declared.extra:
            schema = {"type": "string", "enum": [value for value, _ in declared.extra["choices"]]}
            if is_later(view):
                return build_list_parameter(name, schema, _ONE_OF.format(name))
        case _:
            column: Any = view.queryset.model._meta.get_field(declared.field_name or name)
            schema = build_string(column.max_length, minLength=1)
    return build_parameter(name, schema, description)


def _build_bound(field: Any) -> JSONObject:
    match field:
        case TimeField():
            return build_string(MAX_TIME_LENGTH, TIME_PATTERN, format="date-time")
        case WholeNumberField(minimum=minimum, maximum=maximum):
            return build_integer(minimum, maximum)
    return build_string(14, MONEY_PATTERN)


def build_list_parameter(name: str, items: JSONObject, description: str) -> JSONObject:
    schema = {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_VALUES}
    return build_parameter(name, schema, description, style="form", explode=False)
