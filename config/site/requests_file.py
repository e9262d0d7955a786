"""Every endpoint of a version as a request that a tool sends: a `.http` file for editors, and a Postman collection."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.representation.renderers import JSONRenderer, TextRenderer
from config.api.schema.generator import get_document
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


def build_collection(document: Mapping[str, Any]) -> dict[str, Any]:
    """A Postman collection in the format v2.1.0, with a folder for each tag of an OpenAPI document."""
    variables = {"origin": settings.PUBLIC_URL, "key": "", "email": "", "password": ""}
    folders = defaultdict[str, list[dict[str, Any]]](list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            request = _build_request(path, method, operation, document["components"]["parameters"])
            folders[operation["tags"][0]].append({"name": operation["summary"], "request": request})
    return {
        "info": {"name": f"{document['info']['title']} {document['info']['version']}", "schema": _COLLECTION_SCHEMA},
        "variable": _list(variables),
        "item": [{"name": name, "item": items} for name, items in folders.items()],
    }


def _build_request(path: str, method: str, operation: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
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
    return {
        "method": method.upper(),
        "auth": next((_CREDENTIALS[name] for name in _CREDENTIALS if name in ways), {"type": "noauth"}),
        "header": _list(headers),
        "url": {
            "host": ["{{origin}}"],
            "path": [f":{part[1:-1]}" if part.startswith("{") else part for part in path.strip("/").split("/")],
            "variable": [{"key": each["name"], "value": "1"} for each in parameters if each["in"] == "path"],
            # Users tick the parameters that they want.
            "query": [
                {"key": each["name"], "value": "", "description": each["description"], "disabled": True}
                for each in parameters
                if each["in"] == "query"
            ],
        },
        **({"body": {"mode": "raw", "raw": body}} if body else {}),
    }


def _list(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": name, "value": value} for name, value in values.items()]


_CREDENTIALS = {
    "apiKey": {"type": "apikey", "apikey": _list({"key": "X-API-Key", "value": "{{key}}", "in": "header"})},
    "basic": {"type": "basic", "basic": _list({"username": "{{email}}", "password": "{{password}}"})},
}
_CREDENTIAL_LINES = {"apikey": ["X-API-Key: {{key}}"], "basic": ["Authorization: Basic {{email}} {{password}}"]}


def write_requests(document: Mapping[str, Any]) -> str:
    """The requests of the collection as the `.http` file of JetBrains and VS Code."""
    head = _HEAD.format(title=document["info"]["title"], origin=settings.PUBLIC_URL)
    items = [item for folder in build_collection(document)["item"] for item in folder["item"]]
    return "\n".join([head, *(_write_request(item["name"], item["request"]) for item in items)])


def _write_request(name: str, request: Mapping[str, Any]) -> str:
    url = request["url"]
    path = "/".join(f"{{{{{part[1:]}}}}}" if part.startswith(":") else part for part in url["path"])
    lines = [f"### {name}", *(f"@{variable['key']} = 1" for variable in url["variable"])]
    lines.append(f"{request['method']} {{{{origin}}}}/{path}")
    lines += _CREDENTIAL_LINES.get(request["auth"]["type"], [])
    lines += [f"{header['key']}: {header['value']}" for header in request["header"]]
    return "\n".join([*lines, *(["", request["body"]["raw"]] if "body" in request else [])]) + "\n"


class RequestsFileView(DocumentationView):
    """The requests of the version that `?version=` names, or of the newest."""

    renderer_classes = [TextRenderer]
    # The document that it is made from may have to be made first.
    lanes = {"GET": Lane.SLOW, "HEAD": Lane.SLOW}
    suffix = "http"

    def get(self, request: Request) -> Response:
        version = self.get_version(request)
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
