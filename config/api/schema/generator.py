"""The OpenAPI document as a whole: which endpoints it describes, and its components."""

import json
import zlib
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from rest_framework.request import Request
from rest_framework.views import APIView

from config.api.schema import errors, headers, parameters, responses
from config.api.versions import versioning
from config.api.versions.table import Version
from config.api.versions.versioning import is_versioned
from config.http.json import JSONObject
from config.http.url_map import View

_PREFIX = "/api/v{version}"


# drf-spectacular changes what it shares between threads while it looks for extensions.
_building = Lock()


@cache
def get_document(version: Version) -> JSONObject:
    """The OpenAPI document of a version. It is built once: it does not change while the process runs."""
    with _building:
        return Generator(api_version=str(version)).get_schema(public=True)


class CanonicalEndpointEnumerator(EndpointEnumerator):
    """Leaves out the endpoints that repeat the canonical prefix's under another one."""

    def should_include_endpoint(self, path: str, callback: View) -> bool:
        is_canonical = path.startswith(_PREFIX) or not is_versioned(path)
        return is_canonical and super().should_include_endpoint(path, callback)


class Generator(SchemaGenerator):
    """Describes the endpoints of one version, under its canonical prefix.

    drf-spectacular knows no version that may be named in several places, so that it is given views without versioning.
    """

    endpoint_inspector_cls = CanonicalEndpointEnumerator

    @property
    def described_version(self) -> Version:
        return versioning.get_versions()[str(self.api_version or settings.DEFAULT_API_VERSION)]

    def create_view(self, callback: View, method: str, request: Request | None = None) -> Any:
        view = super().create_view(callback, method, request)
        view.versioning_class = None
        view.described_version = self.described_version
        return view

    def coerce_path(self, path: str, method: str, view: APIView) -> str:
        return super().coerce_path(path, method, view).replace(_PREFIX, f"/api/v{self.described_version}")


def postprocess_document(result: JSONObject, generator: Generator, **options: object) -> JSONObject:
    """Adds the components that no serializer declares.

    The last of drf-spectacular's POSTPROCESSING_HOOKS.

    Args:
        result: the document; changed in place.
        generator: what made it.
        options: what else drf-spectacular passes.

    Returns:
        The document.
    """
    components = result["components"]
    components["responses"] = _share_error_responses(result)
    available = {
        "schemas": responses.SCHEMAS | errors.SCHEMAS,
        "headers": headers.COMPONENTS,
        "parameters": parameters.COMPONENTS,
        "examples": errors.build_error_examples(),
    }
    text = json.dumps([result["paths"], components, available["schemas"]], default=str)
    for kind, ours in available.items():
        used = {name: one for name, one in ours.items() if f'"#/components/{kind}/{name}"' in text}
        components[kind] = components.get(kind, {}) | used
    if (version := generator.described_version).deprecated:
        end = f" and ends on {version.sunset}" if version.sunset else ""
        notice = f"This version is deprecated{end}. Use version {settings.API_VERSIONS[-1]}."
        result["info"]["description"] += f"\n\n{notice}"
    return result


def _share_error_responses(result: JSONObject) -> JSONObject:
    """Replaces error responses by references to components, which it returns: they would be most of the document.

    Responses of operations without a quota stay below their paths, where linters are configured not to require its
    fields.
    """
    shared: dict[str, JSONObject] = {}
    for operations in result["paths"].values():
        for operation in operations.values():
            for status in [status for status in operation["responses"] if status >= "400"]:
                response = operation["responses"][status]
                if "RateLimit" not in response.get("headers", {}):
                    continue
                name = f"Error{status}-{zlib.crc32(json.dumps(response, default=str).encode()):08x}"
                shared[name] = response
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared
