"""What drf-spectacular asks of each operation, answered from what the view declares."""

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema
from rest_framework.serializers import ListSerializer

from config.api.listing.pagination import MAX_LIMIT
from config.api.representation.serializers import StrictField
from config.api.schema import errors, examples, fields, headers, parameters, responses
from config.api.versions.paths import is_versioned, without_prefix
from config.api.versions.table import Change, has
from config.api.viewsets import ResourceViewSet

_VERBS = {
    "list": "List",
    "create": "Create",
    "retrieve": "Read",
    "update": "Replace",
    "partial_update": "Change",
    "destroy": "Delete",
}


class Schema(AutoSchema):
    """Describes one operation: its parameters, body, answers and security."""

    def get_operation(self, *args: Any, **options: Any) -> dict[str, Any] | None:
        operation = super().get_operation(*args, **options)
        # An empty list says that no credential is looked at; without one, it would be the document's to say.
        return operation and {"security": [], **operation}

    def get_tags(self) -> list[str]:
        if not is_versioned(self.path):
            return ["service"]
        return [without_prefix(self.path).strip("/").split("/")[0] or "entry"]

    def get_summary(self) -> str:
        if not isinstance(self.view, ResourceViewSet):
            return self.get_description().partition(":")[0].partition(",")[0].strip().rstrip(".")
        *_, plural = re.findall(r"/([a-z-]+)(?=/|$)", self.path)
        noun = plural if self.view.action == "list" else plural.removesuffix("s")
        below = "".join(f" of one {parent}" for parent in re.findall(r"\{(\w+)_id\}", self.path))
        return f"{_VERBS[self.view.action]} {noun}{below}".replace("-", " ").replace("_", " ")

    def get_description(self) -> str:
        description = super().get_description()
        scope = self.view.required_scope(self.method)
        return f"{description}\n\nScope: `{scope}`." if scope else description

    def get_operation_id(self) -> str:
        return super().get_operation_id() if is_versioned(self.path) else re.sub(r"\W+", "_", self.path).strip("_")

    def is_deprecated(self) -> bool:
        return is_versioned(self.path) and self.view.described_version.deprecated is not None

    def get_auth(self) -> list[dict[str, Any]]:
        if self.view.own_security is not None:
            return list(self.view.own_security)
        if not self.view.authentication_classes:
            return []
        return [*([{}] if errors.is_open(self.view, self.method) else []), *super().get_auth()]

    # --- Fields

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> dict[str, Any]:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)
        if isinstance(field, StrictField):
            return field.described(schema, self.view.described_version, direction)
        return schema

    def _insert_field_validators(self, field: Any, schema: dict[str, Any]) -> None:
        super()._insert_field_validators(field, schema)
        fields.bound(field, schema)

    def _postprocess_serializer_schema(self, schema: dict[str, Any], serializer: Any, direction: str) -> dict[str, Any]:
        """An answer shows all its fields; a request holds no others from the version on that refuses them."""
        described = super()._postprocess_serializer_schema(schema, serializer, direction)
        for nested in described["properties"].values():
            if nested.get("type") == "array":
                nested.setdefault("maxItems", MAX_LIMIT)
        if direction == "response":
            described["required"] = list(described["properties"])
        if direction == "response" or has(self.view.described_version, Change.NO_UNKNOWN_NAMES):
            described["additionalProperties"] = False
        return described

    # --- Parameters and bodies

    def _get_parameters(self) -> list[dict[str, Any]]:
        return parameters.of_operation(self.view, self.method, re.findall(r"\{(\w+)\}", self.path))

    def map_parsers(self) -> list[str]:
        return [parser.media_type for parser in self.view.get_parsers() if self.method in parser.methods]

    def map_renderers(self, attribute: str) -> list[str]:
        return [renderer.media_type for renderer in self.view.get_renderers() if renderer.media_type != "text/html"]

    def get_filter_parameters(self) -> list[Any]:
        return []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return getattr(self.view, "action", None) == "list" or isinstance(serializer, ListSerializer)

    def _get_request_body(self, direction: str = "request") -> dict[str, Any] | None:
        body = super()._get_request_body(direction)
        if body:
            body["required"] = True
            example = examples.of_request(self.get_request_serializer(), self.view, self.method)
            for media in body["content"].values():
                media.update({} if example is None else {"example": example})
        return body

    # --- Answers

    def _get_response_bodies(self, direction: str = "response") -> dict[str, Any]:
        found = {
            status: self._with_headers(int(status), body) for status, body in super()._get_response_bodies().items()
        }
        if self.method == "GET":
            description = "What the client has is still the same."
            found["304"] = self._with_headers(304, {"description": description})
        for status, codes in errors.codes_of(self.view, self.path, self.method).items():
            common = self._common_headers() | headers.of_error(self.view, status, tuple(codes))
            found[str(status)] = errors.response(status, codes, common)
        return dict(sorted(found.items()))

    def _common_headers(self) -> dict[str, Any]:
        if not is_versioned(self.path):
            return headers.of_service()
        return headers.of_service() | headers.of_quota() | headers.of_version(self.view.described_version)

    def _with_headers(self, status: int, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "headers": self._common_headers() | headers.of_success(self.view, self.method, status)}

    def _get_response_for_code(
        self, serializer: Any, status_code: str, media_types: Any = None, direction: str = "response"
    ) -> dict[str, Any]:
        if isinstance(self.view, ResourceViewSet):
            return self._of_resource(int(status_code))
        response = super()._get_response_for_code(serializer, status_code, media_types, direction)
        for media in response.get("content", {}).values():
            if self.view.envelope_known:
                media["schema"] = self._enveloped(media["schema"])
            example = examples.of_view(serializer, self.view)
            media.update({} if example is None else {"example": example})
        return {"description": "Done.", **{name: part for name, part in response.items() if part}}

    def _of_resource(self, status: int) -> dict[str, Any]:
        shown = responses.Representations(self)
        schema = shown.page() if self.view.action == "list" else shown.single(made=status == 201)
        media: dict[str, Any] = {"schema": schema}
        example = examples.of_answer(self.view, self.path, status)
        media |= {"example": example} if example is not None else {}
        return {"description": self.get_summary() + ".", "content": {"application/json": media}}

    def _enveloped(self, data: dict[str, Any]) -> dict[str, Any]:
        name = data.get("items", data)["$ref"].rpartition("/")[2]
        if data.get("type") == "array":
            data = {**data, "maxItems": MAX_LIMIT}
            name = f"{name}List"
        answer = responses.component(self.registry, f"{name}Answer", responses.enveloped(data))
        return responses.any_of(answer, data)
