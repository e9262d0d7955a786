"""One operation of the OpenAPI document, from what its view declares."""

import json
import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry
from drf_spectacular.utils import OpenApiResponse
from rest_framework.serializers import BaseSerializer, Field, ListSerializer

from config.api.bulk import MULTI_STATUS
from config.api.listing.pagination import MAX_LIMIT
from config.api.representation import envelope
from config.api.representation.envelope import LINKS
from config.api.representation.fields import StrictField
from config.api.requests import find_parsers
from config.api.schema import errors, examples, fields, headers, parameters, responses
from config.api.schema.fields import build_string
from config.api.schema.views import has_conditions, is_later, is_streamed, takes_dry_run, takes_include, takes_lines
from config.api.versions.versioning import is_versioned, strip_prefix
from config.api.viewsets import ResourceViewSet
from config.http.errors import DomainError, ErrorCode
from config.http.json import MAX_LINES, JSONObject
from config.http.media_types import NDJSON

# The description of a successful response, by the action.
_OUTCOMES = {
    "list": "A page of {many}.",
    "create": "The {one} was created.",
    "retrieve": "The {one}.",
    "update": "The {one} was replaced.",
    "partial_update": "The {one} was changed.",
}
_MALFORMED = DomainError(ErrorCode.MALFORMED_JSON, "The line is not a JSON object: it is empty.")
_REFUSED_LINE = {"line": 2, "status": 400, "error": envelope.error(_MALFORMED)["error"]}
_VERBS = {
    "list": "List",
    "create": "Create",
    "retrieve": "Read",
    "update": "Replace",
    "partial_update": "Change",
    "destroy": "Delete",
}


class Schema(AutoSchema):
    """Describes one operation: its parameters, body, responses and security.

    The methods with an underscore are drf-spectacular's too: it has no public hook for the bounds of a field, for
    unknown body fields, for references to shared parameters, and for what counts as a list.
    """

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> JSONObject | None:
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        if "requestBody" in operation:
            self._complete_request_body(operation["requestBody"])
        operation["responses"] = self._build_responses(operation["responses"])
        # An empty list says that no credential is looked at. Without the member, the document's own list would apply.
        return {"security": [], **operation}

    def get_tags(self) -> list[str]:
        if not is_versioned(self.path):
            return ["service"]
        return [strip_prefix(self.path).strip("/").split("/")[0] or "entry"]

    def get_summary(self) -> str:
        if not isinstance(self.view, ResourceViewSet):
            return self._describe().partition("\n")[0].rstrip(".")
        names = self.view.queryset.model._meta
        noun = names.verbose_name_plural if self.view.action == "list" else names.verbose_name
        verb = _VERBS[self.view.action]
        if not (parent := re.search(r"\{(\w+)_id\}", self.path)):
            return f"{verb} {noun}"
        return f"{verb} a {parent[1]}'s {noun}" if self.view.action == "list" else f"{verb} a {noun} for a {parent[1]}"

    def get_description(self) -> str:
        """The view's description of the operation; never a docstring, which is for developers of the service."""
        description = self._describe()
        if not isinstance(self.view, ResourceViewSet):
            # Its first line is the summary.
            description = description.partition("\n\n")[2] or description
        if is_streamed(self.view):
            description += (
                "\n\nWith `Accept: application/x-ndjson` or `text/csv`, streams the list without the envelope, `ETag` "
                f"or `Link`. Omit paging parameters{', `include`' if takes_include(self.view) else ''} and "
                "`envelope=true`. If a stream fails midway, the connection is reset."
            )
        scope = self.view.required_scope(self.method)
        return f"{description}\n\nScope: `{scope}`." if scope else description

    def _describe(self) -> str:
        return self.view.describe(getattr(self.view, "action", None) or self.method.lower())

    def get_operation_id(self) -> str:
        return super().get_operation_id() if is_versioned(self.path) else re.sub(r"\W+", "_", self.path).strip("_")

    def is_deprecated(self) -> bool:
        return is_versioned(self.path) and self.view.described_version.deprecated is not None

    def get_auth(self) -> list[JSONObject]:
        if not self.view.authentication_classes:
            return []
        return [*([{}] if errors.allows_anonymous(self.view, self.method) else []), *super().get_auth()]

    # --- Fields

    def _get_serializer_name(self, serializer: BaseSerializer, direction: str, bypass_extensions: bool = False) -> str:
        name: str = super()._get_serializer_name(serializer, direction, bypass_extensions)
        is_own = direction == "request" and self.method == "PUT" and getattr(serializer, "taken_by", {})
        return f"Replaced{name}" if is_own else name

    def _map_serializer_field(self, field: Field, direction: str, bypass_extensions: bool = False) -> JSONObject:
        schema: JSONObject = super()._map_serializer_field(field, direction, bypass_extensions)
        if isinstance(field, StrictField):
            return field.described(schema, self.view.described_version, direction)
        return schema

    def _insert_field_validators(self, field: Field, schema: JSONObject) -> None:
        super()._insert_field_validators(field, schema)
        fields.add_bounds(field, schema)

    def _postprocess_serializer_schema(
        self, schema: JSONObject, serializer: BaseSerializer, direction: str
    ) -> JSONObject:
        """A response has all its fields and may get more; a request has no unknown ones once a version refuses them."""
        mapped: JSONObject = super()._postprocess_serializer_schema(schema, serializer, direction)
        # A docstring, which is for developers of the service.
        mapped.pop("description", None)
        if direction == "request":
            for name, methods in getattr(serializer, "taken_by", {}).items():
                if self.method not in methods:
                    del mapped["properties"][name]
        for nested in mapped["properties"].values():
            if nested.get("type") == "array":
                nested.setdefault("maxItems", MAX_LIMIT)
            if "description" in nested and (direction == "response" or self.method == "PATCH"):
                # A patch leaves a field that is left out as it is.
                nested["description"] = nested["description"].partition(" Default: ")[0]
        if direction == "response":
            mapped["required"] = list(mapped["properties"])
        elif is_later(self.view):
            mapped["additionalProperties"] = False
        return mapped

    # --- Parameters and bodies

    def _get_parameters(self) -> list[JSONObject]:
        return parameters.build_parameters(self.view, self.method, re.findall(r"\{(\w+)\}", self.path))

    def map_parsers(self) -> list[str]:
        version = self.view.described_version
        return [parser.media_type for parser in find_parsers(self.view.get_parsers(), self.method, version)]

    def map_renderers(self, attribute: str) -> list[str]:
        return [renderer.media_type for renderer in self.view.get_renderers() if renderer.media_type != "text/html"]

    def _is_list_view(self, serializer: object = None) -> bool:
        """Not by the declared response: the id of an operation must not change with it."""
        return getattr(self.view, "action", None) == "list" or isinstance(serializer, ListSerializer)

    def _complete_request_body(self, body: JSONObject) -> None:
        body["required"] = True
        serializer = self.get_request_serializer()
        example = examples.build_request_example(serializer, self.view.described_version, self.method)
        for media_type in body["content"].values():
            _add_example(media_type, example)
        if lines := body["content"].get(NDJSON):
            lines["example"] = json.dumps(example, ensure_ascii=False) + "\n"
            lines["schema"] = build_string(
                settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0,
                "^[^\\u0000]*$",
                contentMediaType=NDJSON,
                contentSchema=lines["schema"],
                description=f"One JSON object per line, up to {MAX_LINES} lines.",
            )

    # --- Responses

    def get_response_serializers(self) -> Any:
        """The serializer of the view; nothing for a resource, which `_build_resource_response` describes."""
        if isinstance(self.view, ResourceViewSet):
            return OpenApiResponse()
        return super().get_response_serializers()

    def _build_responses(self, successes: JSONObject) -> JSONObject:
        """All responses of the operation.

        Args:
            successes: what drf-spectacular derived from the declared serializers, by status.
        """
        found = {status: self._build_success(int(status), response) for status, response in successes.items()}
        if takes_dry_run(self.view, self.method):
            found.setdefault("200", self._build_dry_run())
        if takes_lines(self.view, self.method):
            found[str(MULTI_STATUS)] = self._add_headers(MULTI_STATUS, self._build_multi_status(found["201"]))
            found["201"]["description"] += " With NDJSON: the result of each line, in the form of the 207."
        if self.method == "GET" and has_conditions(self.view, self.method):
            found["304"] = self._add_headers(304, {"description": "The `ETag` in `If-None-Match` still matches."})
        for status, codes in errors.get_error_codes(self.view, self.path, self.method).items():
            names = self._get_common_headers(codes) | headers.get_error_headers(self.view, status, codes)
            found[str(status)] = errors.build_error_response(status, codes, names)
        return dict(sorted(found.items()))

    def _build_dry_run(self) -> JSONObject:
        """The response to a dry run of what otherwise is 201 or 204."""
        if self.method == "POST":
            statuses = "201 or 207" if takes_lines(self.view, self.method) else "201"
            response = self._build_resource_response(201)
            response["description"] = f"With `dry_run=true`: the body of the {statuses}, possibly with another `id`."
        else:
            schema = {"$ref": "#/components/schemas/NothingAnswer"}
            response = {
                "content": {"application/json": {"schema": schema, "example": envelope.single(None)}},
                "description": "With `dry_run=true`: the real request would return 204.",
            }
        return self._add_headers(200, response)

    def _build_multi_status(self, created: JSONObject) -> JSONObject:
        """The response with the result of each line, in words.

        Of several successful bodies a generated client makes one type that can be any of them, and who creates a single
        resource would have to find out which one came.
        """
        single = created["content"]["application/json"]["example"]["data"]
        data = {name: value for name, value in single.items() if name != LINKS}
        example = envelope.lines([{"line": 1, "status": 201, "data": data}, _REFUSED_LINE], created=1)
        description = (
            "With NDJSON and `partial=true`: the result of each line, as `application/json`. A rejected line has "
            "`error` instead of `data`."
            f"\n\n```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"
        )
        return {"description": description}

    def _build_success(self, status: int, response: JSONObject) -> JSONObject:
        if isinstance(self.view, ResourceViewSet):
            response = response if status == 204 else self._build_resource_response(status)
        else:
            serializer = self.get_response_serializers()
            example = examples.build_response_example(serializer, self.view.described_version)
            members = self.view.own_members if self.method == "GET" else {}
            if example is not None and members:
                example |= {name: each["examples"][0] for name, each in members.items() if "examples" in each}
            for media_type in response.get("content", {}).values():
                if self.view.envelope_known:
                    media_type["schema"] = self._build_enveloped(media_type["schema"], members)
                _add_example(media_type, example)
            response = {"description": "Success.", **{name: part for name, part in response.items() if part}}
        return self._add_headers(status, response)

    def _build_resource_response(self, status: int) -> JSONObject:
        properties = self._map_serializer(self.view.get_serializer(), "response")["properties"]
        if self.view.action == "list":
            schema = responses.build_page(self.view, properties, self.registry)
        else:
            schema = responses.build_single(self.view, properties, self.registry, created=status == 201)
        media_type = {"schema": schema}
        version = self.view.described_version
        _add_example(media_type, examples.build_resource_example(self.view, version, self.path, status))
        names = self.view.queryset.model._meta
        outcome = self.view.texts.get("created") if status == 201 else None
        description = (outcome or _OUTCOMES[self.view.action]).format(
            one=names.verbose_name, many=names.verbose_name_plural
        )
        if is_streamed(self.view):
            description += " As `application/x-ndjson` or `text/csv`: the whole list."
        return {"description": description, "content": {"application/json": media_type}}

    def _build_enveloped(self, data: JSONObject, members: JSONObject) -> JSONObject:
        name = data.get("items", data)["$ref"].rpartition("/")[2]
        if data.get("type") == "array":
            data = {**data, "maxItems": MAX_LIMIT}
            name = f"{name}List"
        envelope = responses.build_envelope(data, **members)
        return responses.register_component(self.registry, f"{name}Answer", envelope)

    def _get_common_headers(self, codes: Collection[ErrorCode] = ()) -> JSONObject:
        if not is_versioned(self.path):
            return headers.COMMON
        return headers.COMMON | headers.QUOTA | headers.get_version_headers(self.view.described_version, codes)

    def _add_headers(self, status: int, response: JSONObject) -> JSONObject:
        own = headers.get_success_headers(self.view, self.method, status)
        return {**response, "headers": self._get_common_headers() | own}


def _add_example(media_type: JSONObject, example: JSONObject | str | None) -> None:
    if example is not None:
        media_type["example"] = example
