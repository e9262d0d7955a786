"""The document as a whole: which endpoints it holds, and its components."""

import json
from functools import cache
from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import get_lib_doc_excludes

from config.api.representation.serializers import ResourceSerializer
from config.api.schema import errors, headers, parameters, responses
from config.api.versions import versioning
from config.api.versions.paths import is_versioned
from config.api.versions.table import Version

Endpoint = tuple[str, str, str, Any]

_PATH = "/api/v{version}"


@cache
def document(version: Version) -> dict[str, Any]:
    """The OpenAPI document of a version. It is made once: what it tells does not change while the process runs."""
    return Generator(api_version=str(version)).get_schema(public=True)


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
            if path.startswith(_PATH) or not is_versioned(path)
        ]


def finished(result: dict[str, Any], generator: Any, **options: Any) -> dict[str, Any]:
    """drf-spectacular's last hook: adds the components that are not of a serializer, and tells of the tags."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {}).update(responses.SCHEMAS | errors.SCHEMAS)
    _share_responses(result)
    for kind, known in {
        "headers": headers.COMPONENTS,
        "parameters": parameters.COMPONENTS,
        "examples": errors.examples(),
    }.items():
        text = json.dumps([result["paths"], components["responses"]], default=str)
        components[kind] = {name: one for name, one in known.items() if f'"#/components/{kind}/{name}"' in text}
    result["tags"] = _tags(result)
    return result


def _tags(result: dict[str, Any]) -> list[dict[str, str]]:
    """The tags, each with a sentence: the settings', or what is said of the address above all others that have it."""
    told = {tag["name"]: tag for tag in result["tags"]}
    for path in sorted(result["paths"], key=len):
        for operation in result["paths"][path].values():
            for name in operation["tags"]:
                sentence = operation["description"].partition("\n\n")[0]
                told.setdefault(name, {"name": name, "description": sentence})
    return [told[name] for name in sorted(told)]


def _share_responses(result: dict[str, Any]) -> None:
    """Moves equal error answers into components: they would be most of the document.

    But for those of the few addresses that cost no quota, which are alike among themselves alone.
    """
    shared: dict[str, Any] = result["components"].setdefault("responses", {})
    names: dict[str, str] = {}
    for operations in result["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status < "400" or "RateLimit" not in response["headers"]:
                    continue
                text = json.dumps(response, default=str)
                if text not in names:
                    phrase = response["description"].partition(":")[0].strip(".").title().replace(" ", "")
                    alike = sum(name.startswith(phrase) for name in shared)
                    names[text] = f"{phrase}{alike + 1 if alike else ''}"
                    shared[names[text]] = response
                operation["responses"][status] = {"$ref": f"#/components/responses/{names[text]}"}
