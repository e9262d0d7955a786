"""Every endpoint of a version as a request that an editor can send: the `.http` files of JetBrains and VS Code."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.schema import get_document
from config.api.versions import versioning
from config.api.versions.versioning import VERSION_PARAMETER
from config.http.lanes import Lane
from config.site.documentation import DocumentationView

_HEAD = """\
# {title}. Put your API key into `key`; email and password are for what a key may not do.
@origin = {origin}
@key = urs_…
@email = …
@password = …
"""


class TextRenderer(BaseRenderer):
    media_type = "text/plain"
    format = "text"
    charset = "utf-8"

    def render(self, data: str, accepted_media_type: str | None = None, renderer_context: object = None) -> bytes:
        return data.encode()


class RequestsFileView(DocumentationView):
    """The requests of the version that `?version=` names, or of the newest."""

    renderer_classes = [TextRenderer]
    # The document that it is made from may have to be made first.
    lanes = {"GET": Lane.SLOW, "HEAD": Lane.SLOW}

    def get(self, request: Request) -> Response:
        has_version = VERSION_PARAMETER in request.GET
        version = versioning.get_version(request) if has_version else settings.API_VERSIONS[-1]
        disposition = f'attachment; filename="users-v{version}.http"'
        return Response(write_requests(get_document(version)), headers={"Content-Disposition": disposition})


def write_requests(document: Mapping[str, Any]) -> str:
    """The file: a request for each operation, with the example of its body.

    Args:
        document: an OpenAPI document.
    """
    head = _HEAD.format(title=document["info"]["title"], origin=settings.PUBLIC_URL)
    operations = (
        _write_request(path, method, operation, document["components"]["parameters"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in {"get", "post", "put", "patch", "delete"}
    )
    return "\n".join([head, *operations])


def _write_request(path: str, method: str, operation: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    parameters = [
        shared[parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter
        for parameter in operation.get("parameters", ())
    ]
    lines = [f"### {operation['summary']}"]
    lines += [f"@{parameter['name']} = 1" for parameter in parameters if parameter["in"] == "path"]
    lines.append(f"{method.upper()} {{{{origin}}}}{path.replace('{', '{{').replace('}', '}}')}")
    ways = {name for way in operation.get("security", ()) for name in way}
    if "apiKey" in ways:
        lines.append("X-API-Key: {{key}}")
    elif "basic" in ways:
        lines.append("Authorization: Basic {{email}} {{password}}")
    lines += [
        # A new one each time that the request is sent.
        f"{parameter['name']}: {{{{$guid}}}}"
        for parameter in parameters
        if parameter["name"] == "Idempotency-Key" and parameter.get("required")
    ]
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        body = json.dumps(content["application/json"]["example"], indent=2, ensure_ascii=False)
        lines += ["Content-Type: application/json", "", body]
    elif content:
        media_type, described = next(iter(content.items()))
        lines += [f"Content-Type: {media_type}", "", urlencode(described["example"])]
    return "\n".join(lines) + "\n"
