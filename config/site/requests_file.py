"""Every endpoint of a version as a request that a tool sends: a `.http` file for editors, and a Postman collection."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.representation.renderers import JSONRenderer, TextRenderer
from config.api.schema import get_document
from config.api.versions import versioning
from config.api.versions.versioning import VERSION_PARAMETER
from config.http.lanes import Lane
from config.site.documentation import DocumentationView

_HEAD = """\
# {title}. Set `key` to your API key. Set `email` and `password` for the requests that do not accept a key.
@origin = {origin}
@key = urs_…
@email = …
@password = …
"""
_COLLECTION_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
# The tools replace this with a new UUID for each request.
_NEW_KEY = "{{$guid}}"


@dataclass(frozen=True)
class PreparedRequest:
    """A request, with the example of its body.

    Attributes:
        path: with its variables in braces.
        variables: the names of these.
        query: its parameters, each with its description.
        headers: those but the credential's.
        credential: `apiKey`, `basic`, or nothing.
    """

    tag: str
    name: str
    method: str
    path: str
    variables: Sequence[str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    credential: str
    body: str = ""


def prepare_requests(document: Mapping[str, Any]) -> Iterator[PreparedRequest]:
    """A request for each operation of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield _prepare(path, method, operation, document["components"]["parameters"])


def _prepare(path: str, method: str, operation: Mapping[str, Any], shared: Mapping[str, Any]) -> PreparedRequest:
    parameters = [
        shared[parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter
        for parameter in operation.get("parameters", ())
    ]
    ways = {name for way in operation.get("security", ()) for name in way}
    required_key = any(each["name"] == "Idempotency-Key" and each.get("required") for each in parameters)
    headers = {"Idempotency-Key": _NEW_KEY} if required_key else {}
    body, content = "", operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        headers["Content-Type"] = "application/json"
        body = json.dumps(content["application/json"]["example"], indent=2, ensure_ascii=False)
    elif content:
        headers["Content-Type"], described = next(iter(content.items()))
        body = urlencode(described["example"])
    return PreparedRequest(
        tag=operation["tags"][0],
        name=operation["summary"],
        method=method.upper(),
        path=path,
        variables=[each["name"] for each in parameters if each["in"] == "path"],
        query={each["name"]: each["description"] for each in parameters if each["in"] == "query"},
        headers=headers,
        credential=next((name for name in ("apiKey", "basic") if name in ways), ""),
        body=body,
    )


def write_requests(document: Mapping[str, Any]) -> str:
    """The `.http` file of JetBrains and VS Code."""
    head = _HEAD.format(title=document["info"]["title"], origin=settings.PUBLIC_URL)
    return "\n".join([head, *map(_write_request, prepare_requests(document))])


def _write_request(request: PreparedRequest) -> str:
    credentials = {"apiKey": ["X-API-Key: {{key}}"], "basic": ["Authorization: Basic {{email}} {{password}}"]}
    lines = [f"### {request.name}", *(f"@{name} = 1" for name in request.variables)]
    lines.append(f"{request.method} {{{{origin}}}}{request.path.replace('{', '{{').replace('}', '}}')}")
    lines += credentials.get(request.credential, [])
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return "\n".join([*lines, *(["", request.body] if request.body else [])]) + "\n"


def build_collection(document: Mapping[str, Any]) -> dict[str, Any]:
    """A Postman collection in the format v2.1.0, with a folder for each tag."""
    variables = {"origin": settings.PUBLIC_URL, "key": "", "email": "", "password": ""}
    folders: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for request in prepare_requests(document):
        folders[request.tag].append({"name": request.name, "request": _build_item(request)})
    return {
        "info": {"name": f"{document['info']['title']} {document['info']['version']}", "schema": _COLLECTION_SCHEMA},
        "variable": _list(variables),
        "item": [{"name": name, "item": items} for name, items in folders.items()],
    }


def _build_item(request: PreparedRequest) -> dict[str, Any]:
    segments = [f":{part[1:-1]}" if part.startswith("{") else part for part in request.path.strip("/").split("/")]
    credentials = {
        "apiKey": {"type": "apikey", "apikey": _list({"key": "X-API-Key", "value": "{{key}}", "in": "header"})},
        "basic": {"type": "basic", "basic": _list({"username": "{{email}}", "password": "{{password}}"})},
    }
    return {
        "method": request.method,
        "auth": credentials.get(request.credential, {"type": "noauth"}),
        "header": _list(request.headers),
        "url": {
            "host": ["{{origin}}"],
            "path": segments,
            "variable": [{"key": name, "value": "1"} for name in request.variables],
            # Users tick the parameters that they want.
            "query": [
                {"key": name, "value": "", "description": text, "disabled": True}
                for name, text in request.query.items()
            ],
        },
        **({"body": {"mode": "raw", "raw": request.body}} if request.body else {}),
    }


def _list(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": name, "value": value} for name, value in values.items()]


class RequestsFileView(DocumentationView):
    """The requests of the version that `?version=` names, or of the newest."""

    renderer_classes = [TextRenderer]
    # The document that it is made from may have to be made first.
    lanes = {"GET": Lane.SLOW, "HEAD": Lane.SLOW}
    suffix = "http"

    def get(self, request: Request) -> Response:
        has_version = VERSION_PARAMETER in request.GET
        version = versioning.get_version(request) if has_version else settings.API_VERSIONS[-1]
        disposition = f'attachment; filename="users-v{version}.{self.suffix}"'
        return Response(self.write(get_document(version)), headers={"Content-Disposition": disposition})

    def write(self, document: Mapping[str, Any]) -> Any:
        return write_requests(document)


class PostmanView(RequestsFileView):
    """The same requests as a Postman collection."""

    renderer_classes = [JSONRenderer]
    suffix = "postman_collection.json"

    def write(self, document: Mapping[str, Any]) -> Any:
        return build_collection(document)
