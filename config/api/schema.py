"""The OpenAPI document: what drf-spectacular cannot see of the conventions."""

from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes
from drf_spectacular.utils import OpenApiParameter

from config.api import idempotency, versioning
from config.api.errors import ErrorCode
from config.api.idempotency import KeyPolicy
from config.api.paths import without_prefix
from config.api.permissions import PublicPermission
from config.api.serializers import ResourceSerializer, StrictField
from config.api.versions import Version

Endpoint = tuple[str, str, str, Any]

_PATH = "/api/v{version}"
_LINK = {
    "type": "object",
    "properties": {"href": {"type": "string"}, "method": {"type": "string"}},
    "required": ["href"],
}
_LINKS = {"type": "object", "additionalProperties": _LINK}
_META = {
    "oneOf": [
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in ("page", "limit", "total", "totalPages")},
            "required": ["page", "limit", "total", "totalPages"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "nextCursor": {"type": ["string", "null"]},
                "prevCursor": {"type": ["string", "null"]},
                "hasMore": {"type": "boolean"},
            },
            "required": ["nextCursor", "prevCursor", "hasMore"],
            "additionalProperties": False,
        },
    ]
}
_IF_MATCH = "The tag of what one has: 412 when the resource has changed since."
_ETAG = {"ETag": {"description": "The strong entity tag of the content.", "schema": {"type": "string"}}}
_ERROR = {
    "type": "object",
    "properties": {
        "success": {"const": False},
        "error": {
            "type": "object",
            "properties": {
                "code": {"enum": [code.value for code in ErrorCode]},
                "message": {"type": "string"},
                "details": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
                        "required": ["field", "message"],
                    },
                },
            },
            "required": ["code", "message", "details"],
        },
    },
    "required": ["success", "error"],
}


def with_errors(result: dict[str, Any], generator: Any, **options: Any) -> dict[str, Any]:
    """Gives every operation the one error body, for whatever status it does not name."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = _ERROR
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = {"description": "An error", "content": content}
            if any(parameter["name"] == "If-None-Match" for parameter in operation.get("parameters", ())):
                operation["responses"]["304"] = {"description": "What the client has is still the same."}
    return result


def without_own_description() -> list[type]:
    """The classes whose docstrings speak to developers of the service, not to its consumers."""
    return [*get_lib_doc_excludes(), ResourceSerializer]


class Generator(SchemaGenerator):
    """Describes the endpoints under the canonical prefix of one version; the others are the same views.

    drf-spectacular knows no version that may stand in several places, so it takes them for views without any.
    """

    @property
    def described(self) -> Version:
        return versioning.by_number()[str(self.api_version or settings.DEFAULT_API_VERSION)]

    def create_view(self, callback: Any, method: str, request: Any = None) -> Any:
        view = super().create_view(callback, method, request)
        view.versioning_class = None
        view.described_version = self.described
        return view

    def _get_paths_and_endpoints(self) -> list[Endpoint]:
        prefix = f"/api/v{self.described}"
        return [
            (path.replace(_PATH, prefix), path_regex.replace(_PATH, prefix), method, view)
            for path, path_regex, method, view in super()._get_paths_and_endpoints()
            if path.startswith(_PATH)
        ]


class Schema(AutoSchema):
    """Adds the parameters, the envelope and the scope that the base viewset gives every resource."""

    def get_tags(self) -> list[str]:
        return [without_prefix(self.path).strip("/").split("/")[0] or "entry"]

    def is_deprecated(self) -> bool:
        return self.view.described_version.deprecated is not None

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> dict[str, Any]:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)
        if isinstance(field, StrictField):
            return field.described(schema, self.view.described_version, direction)
        return schema

    def get_auth(self) -> list[dict[str, Any]]:
        return [] if PublicPermission in self.view.permission_classes else super().get_auth()

    def get_override_parameters(self) -> list[OpenApiParameter]:
        if not hasattr(self.view, "sortable"):
            return []
        if self.method == "DELETE":
            return self._preconditions()
        return [
            *self._list_parameters(),
            *self._representation_parameters(),
            *self._idempotency_parameters(),
            *self._preconditions(),
        ]

    def _preconditions(self) -> list[OpenApiParameter]:
        """The headers of conditional requests (RFC 9110, section 13.1); a POST looks at none."""
        told = {
            "GET": ("If-None-Match", "The tag of what one has: 304 when it is still the same."),
            "PUT": ("If-Match", _IF_MATCH),
            "PATCH": ("If-Match", _IF_MATCH),
            "DELETE": ("If-Match", _IF_MATCH),
        }
        if self.method not in told:
            return []
        name, description = told[self.method]
        return [OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)]

    def _representation_parameters(self) -> list[OpenApiParameter]:
        return [
            OpenApiParameter("fields", str, description="Comma-separated names of the fields to answer."),
            OpenApiParameter("envelope", bool, description="`false` answers the bare object or array.", default=True),
        ]

    def _idempotency_parameters(self) -> list[OpenApiParameter]:
        if self.method != "POST" or self.view.idempotency not in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED}:
            return []
        return [
            OpenApiParameter(
                idempotency.HEADER,
                str,
                OpenApiParameter.HEADER,
                required=self.view.idempotency is KeyPolicy.REQUIRED,
                description="A key of your own, new for each thing to create: a retry with it gets the first answer.",
            ),
            OpenApiParameter(
                idempotency.REPLAYED,
                bool,
                OpenApiParameter.HEADER,
                response=[201],
                description="On the answer to a retry: nothing was created now.",
            ),
        ]

    def _list_parameters(self) -> list[OpenApiParameter]:
        if not self._is_list_view():
            return []
        filters = self.view.filterset_class.base_filters
        return [
            OpenApiParameter("page", int, description="Page from 1.", default=1),
            OpenApiParameter("offset", int, description="Items to skip, instead of `page`."),
            OpenApiParameter(
                "cursor", str, description="Place in the list, instead of `page`; empty starts.", allow_blank=True
            ),
            OpenApiParameter("limit", int, description="Page size, at most 100.", default=20),
            OpenApiParameter("sort", str, enum=list(self.view.sortable), default="id"),
            OpenApiParameter("order", str, enum=["asc", "desc"], default="asc"),
            *(
                OpenApiParameter(
                    name,
                    str,
                    description="Equality filter.",
                    enum=[value for value, _ in one.extra["choices"]] if "choices" in one.extra else None,
                )
                for name, one in filters.items()
            ),
        ]

    def map_parsers(self) -> list[str]:
        return [parser.media_type for parser in self.view.get_parsers() if self.method in parser.methods]

    def map_renderers(self, attribute: str) -> list[str]:
        return ["application/json"]

    def get_filter_parameters(self) -> list[Any]:
        return []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return getattr(self.view, "action", None) == "list"

    def _get_response_for_code(self, serializer: Any, status_code: str, *args: Any, **options: Any) -> dict[str, Any]:
        response = super()._get_response_for_code(serializer, status_code, *args, **options)
        for media in response.get("content", {}).values():
            media["schema"] = self._enveloped(media["schema"])
        if hasattr(self.view, "sortable") and (status_code == "200" or self._makes_no_secret(status_code)):
            response["headers"] = {**response.get("headers", {}), **_ETAG}
        return response

    def _makes_no_secret(self, status_code: str) -> bool:
        return status_code == "201" and "no-store" not in self.view.cache_control

    def _enveloped(self, data: dict[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = {"success": {"const": True}, "data": data}
        if self._is_list_view():
            properties |= {"meta": _META, "_links": _LINKS}
        elif hasattr(self.view, "sortable"):
            properties["data"] = {"allOf": [data, {"type": "object", "properties": {"_links": _LINKS}}]}
        return {"type": "object", "properties": properties, "required": list(properties)}
