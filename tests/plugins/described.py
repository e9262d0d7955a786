"""A plugin of pytest: every answer that the tests receive is one that the OpenAPI document describes.

Whatever Django's test client is answered is looked up in the document of its version: the operation, the status, the
headers, the content type, the code of an error, the body. When the tests are over, an answer that is not as it is
described fails the run, which names the operation, the fault and the first test that met it. Each worker of
pytest-xdist tells the process that started it.

Left out by rule are answers that no operation can give: where the URL map has nothing, and of what stands at the root
only, the document; for a method that the address does not have, and OPTIONS; of a version that there is not; to an
address longer than a server lets through; and pages for people, where one was asked for.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from django.test import Client

FAULTS = pytest.StashKey[list[str]]()
# The parameters that leave out parts of a body.
FORMS: Sequence[Mapping[str, str]] = (
    {},
    {"fields": ""},
    {"envelope": "false"},
    {"fields": "", "envelope": "false"},
)
_WITHOUT_BODY = frozenset({204, 304})
# The headers of a page, which a whole list does not have.
_NOT_OF_STREAMS = frozenset({"ETag", "Link"})

Faults = Iterator[str]
Validator = Any


@dataclass(frozen=True)
class Header:
    required: bool
    is_text: bool
    validator: Validator

    def fault(self, value: str | None) -> str | None:
        if value is None:
            return "is missing" if self.required else None
        try:
            read = value if self.is_text else json.loads(value)
        except ValueError:
            return f"is {value!r}"
        return first_error(self.validator, read)


@dataclass(frozen=True)
class Answer:
    """What the document says of one status of one operation.

    Attributes:
        headers: those it may have, by name.
        text: in which the content types are told of which no client is generated.
        bodies: the schema of each content type.
        codes: the codes of an error; empty where the document names none.
    """

    headers: Mapping[str, Header]
    text: str
    bodies: Mapping[str, Any]
    codes: frozenset[str]


def close(value: Any) -> Any:
    """A copy in which every object has no other properties than those that are described.

    The document leaves answers open for what a later release adds; what this one answers is described.
    """
    if isinstance(value, list):
        return [close(each) for each in value]
    if not isinstance(value, dict):
        return value
    closed = {name: each if name in {"example", "examples"} else close(each) for name, each in value.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


class Reference:
    """One document, closed, and compiled as far as it was needed."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        document = close(document)
        self._document = document
        self._paths: dict[int, list[tuple[tuple[str, ...], str]]] = {}
        for template in document["paths"]:
            parts = tuple(template.split("/"))
            self._paths.setdefault(len(parts), []).append((parts, template))
        # The headers that the document says anything of; another one is nobody's promise.
        self.known = {name.removeprefix("Required-") for name in document["components"]["headers"]}
        self._answers: dict[tuple[str, str, int], Answer | None] = {}

    def find(self, path: str) -> str | None:
        parts = path.split("/")
        for known, template in self._paths.get(len(parts), ()):
            if all(part and (part == one or one[:1] == "{") for one, part in zip(known[1:], parts[1:], strict=True)):
                return template
        return None

    def has(self, template: str, method: str) -> bool:
        return method in self._document["paths"][template]

    def answer(self, template: str, method: str, status: int) -> Answer | None:
        """None for a status that the operation does not have."""
        place = (template, method, status)
        if place not in self._answers:
            found = self._document["paths"][template][method]["responses"].get(str(status))
            self._answers[place] = found and self._compiled(self._resolved(found))
        return self._answers[place]

    def _compiled(self, response: Mapping[str, Any]) -> Answer:
        content = response.get("content", {})
        codes = {code for media in content.values() for code in media.get("examples", ())}
        return Answer(
            {name: self._header(one) for name, one in response.get("headers", {}).items()},
            response["description"],
            {kind: media["schema"] for kind, media in content.items()},
            frozenset(codes),
        )

    def describe_lines(self, created: Answer) -> Mapping[str, Any]:
        """The bodies that tell what became of lines, by the answer to a single one: the document has an example."""
        single = self._resolved(created.bodies["application/json"])["properties"]["data"]
        row = self._partial(single) | {"required": [], "minProperties": 1}
        properties = {
            "line": {"type": "integer", "minimum": 1},
            "status": {"type": "integer", "minimum": 201},
            "data": row,
            "error": {"$ref": "#/components/schemas/ErrorBody"},
        }
        line = {"type": "object", "properties": properties, "required": ["line", "status"], "maxProperties": 3}
        body = {
            "type": "object",
            "properties": {
                "success": {"const": True},
                "data": {"type": "array", "items": {**line, "minProperties": 3, "additionalProperties": False}},
                "meta": {"type": "object", "properties": {"created": {"type": "integer"}}, "required": ["created"]},
            },
            "required": ["success", "data", "meta"],
            "additionalProperties": False,
        }
        return {"application/json": body}

    def validate(self, schema: Mapping[str, Any], body: Any, query: Mapping[str, str]) -> str | None:
        """The first fault of a body. Two parameters leave out parts of what is described, as they say of themselves."""
        schema = self._resolved(schema)
        if "data" not in schema.get("properties", {}):
            return first_error(self._validator(json.dumps(schema)), body)
        data = self._resolved(schema["properties"]["data"])
        if "fields" in query:
            data = {**data, "items": self._partial(data["items"])} if "items" in data else self._partial(data)
        if query.get("envelope") == "false":
            schema = data
        else:
            schema = {**schema, "properties": {**schema["properties"], "data": data}}
        return first_error(self._validator(json.dumps(schema)), body)

    def validate_rows(self, page: Mapping[str, Any], rows: Iterable[Any], query: Mapping[str, str]) -> str | None:
        """The first fault of the rows of a stream, which are those of a page."""
        row = self._resolved(self._resolved(page)["properties"]["data"]["items"])
        row = self._partial(row) if "fields" in query else row
        validator = self._validator(json.dumps(row))
        return next(filter(None, (first_error(validator, each) for each in rows)), None)

    def _partial(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields that `fields` names, none of which is `_links`."""
        properties = {name: one for name, one in self._resolved(schema)["properties"].items() if name != "_links"}
        if "line" in properties:
            return schema
        return {**self._resolved(schema), "properties": properties, "required": [], "minProperties": 1}

    def _header(self, header: Mapping[str, Any]) -> Header:
        header = self._resolved(header)
        schema = header["schema"]
        return Header(header["required"], schema["type"] == "string", self._validator(json.dumps(schema)))

    @cache  # noqa: B019  # there are as many references as versions
    def _validator(self, schema: str) -> Validator:
        whole = {**json.loads(schema), "components": self._document["components"]}
        return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)

    def _resolved(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in one:
            found: Any = self._document
            for part in one["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            one = found
        return one


def first_error(validator: Validator, instance: Any) -> str | None:
    if validator.is_valid(instance):
        return None
    error = deepest(next(validator.iter_errors(instance)))
    where = "/".join(map(str, error.instance_path))
    return (f"{where}: {error.message}" if where else error.message)[:300]


def deepest(error: Any) -> Any:
    """Of the reasons why nothing of an `anyOf` fits, the one that went furthest."""
    if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        return error
    reasons = [deepest(reason) for branch in error.kind.context for reason in branch]
    return max(reasons, key=lambda reason: len(reason.instance_path), default=error)


class Watch:
    """What one process has seen: the first test that met each fault, by the operation and the fault."""

    def __init__(self) -> None:
        self.met: dict[tuple[str, str], str] = {}
        self._references: dict[Any, Reference] = {}

    def faults(self) -> list[str]:
        return sorted(f"{operation}: {fault} ({test})" for (operation, fault), test in self.met.items())

    def look(self, method: str, path: str, response: Any) -> None:
        found = self._place(path, response)
        if found is None:
            return
        reference, address = found
        known_as = "get" if method == "HEAD" else method.lower()
        template = reference.find(address)
        faults: Iterable[str] = ()
        if template is not None and reference.has(template, known_as):
            answer = reference.answer(template, known_as, response.status_code)
            created = reference.answer(template, known_as, 201)
            if is_ndjson(response.wsgi_request) and response.status_code in {200, 201, 207} and answer and created:
                answer = replace(answer, bodies=reference.describe_lines(created))
            faults = faults_of(reference, answer, method, response)
        elif is_operation(path, known_as):
            faults = ["the operation is not described"]
        for fault in faults:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            self.met.setdefault((f"{method} {template or address} {response.status_code}", fault), test)

    def _place(self, path: str, response: Any) -> tuple[Reference, str] | None:
        """The document that an answer should be found in, and the address there. None where nothing can describe it."""
        from config.api.versions.versioning import get_prefix, is_versioned, parse_version, strip_prefix
        from config.http.request_limits import MAX_TARGET

        sent = response.wsgi_request
        if response.status_code == 404 and sent.resolver_match is None:
            return None
        if len(path) + len(sent.META.get("QUERY_STRING", "")) > MAX_TARGET:
            return None
        number = response.headers.get("API-Version")
        if is_versioned(path):
            if number is None or parse_version(path) not in {None, number}:
                return None  # A CORS preflight, which no version answers, or the address of a version that is none.
            below = strip_prefix(path)
            path = f"/api/v{number}{'' if below == '/' and not get_prefix(path) else below}"
        reference = self._reference(number)
        return (reference, path) if reference else None

    def _reference(self, number: str | None) -> Reference | None:
        from config.api.schema.generator import get_document
        from config.api.versions import versioning

        version = versioning.get_versions().get(number) if number else versioning.get_default_version()
        if version not in self._references and version is not None:
            self._references[version] = Reference(json.loads(json.dumps(get_document(version))))
        return self._references.get(version)


def is_operation(path: str, method: str) -> bool:
    """Whether an address is one of the API's, and the URL map leads to a view that has the method."""
    from django.urls import Resolver404, resolve

    from config.api.versions.versioning import is_versioned

    try:
        found: Any = resolve(path).func
    except Resolver404:
        return False
    view = getattr(found, "cls", None)  # of DRF's views alone
    if view is None or method == "options" or method not in view.http_method_names or not is_versioned(path):
        return False
    return method in found.actions if hasattr(found, "actions") else hasattr(view, method)


def is_ndjson(request: Any) -> bool:
    from config.http.media_types import NDJSON

    return request.META.get("CONTENT_TYPE", "").lower().startswith(NDJSON)


def asks_for_page(request: Any) -> bool:
    from config.api.versions.versioning import choose_media_type
    from config.http.media_types import HTML

    return choose_media_type(request.META.get("HTTP_ACCEPT", "")).media_type == HTML


def faults_of(reference: Reference, answer: Answer | None, method: str, response: Any) -> Faults:
    """What is otherwise than the document says; without an answer, the status itself."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    is_for_person = kind == "text/html" and asks_for_page(response.wsgi_request)
    if answer is None:
        # A browser, for which no document is written, may be led elsewhere.
        if not is_for_person or response.status_code != 302:
            yield "the status is not described"
    elif not is_for_person:
        yield from _of_headers(reference, answer, response)
        yield from _of_body(reference, answer, kind, method, response)


def _of_headers(reference: Reference, answer: Answer, response: Any) -> Faults:
    for name, header in answer.headers.items():
        if name in _NOT_OF_STREAMS and is_stream(response):
            continue
        if fault := header.fault(response.headers.get(name)):
            yield f"the header {name} {fault}"
    for name in reference.known - answer.headers.keys():
        if name in response.headers:
            yield f"the header {name} is not described"


def is_stream(response: Any) -> bool:
    from config.http.media_types import CSV, NDJSON

    return response.headers.get("Content-Type", "").partition(";")[0] in {NDJSON, CSV}


def _of_stream(reference: Reference, answer: Answer, kind: str, response: Any) -> Faults:
    if kind not in answer.text and kind not in answer.bodies:
        yield f"the content type {kind} is not described"
    elif kind.endswith("ndjson") and not response.streaming and "Content-Encoding" not in response.headers:
        # One that is sent piece by piece is the test's to read.
        rows = map(json.loads, response.content.splitlines())
        row = answer.bodies.get(kind)
        page = {"properties": {"data": {"items": row}}} if row else answer.bodies["application/json"]
        if fault := reference.validate_rows(page, rows, response.wsgi_request.GET.dict()):
            yield f"a row is not as described: {fault}"


def _of_body(reference: Reference, answer: Answer, kind: str, method: str, response: Any) -> Faults:
    if is_stream(response):
        yield from _of_stream(reference, answer, kind, response)
        return
    content = b"".join(response) if response.streaming else response.content
    if method == "HEAD" or response.status_code in _WITHOUT_BODY or not answer.bodies:
        if content:
            yield "there is a body"
        return
    if kind not in answer.bodies:
        yield f"the content type {kind} is not described"
        return
    if response.headers.get("Content-Encoding") == "gzip":
        content = gzip.decompress(content)
    body = json.loads(content) if kind.endswith("json") else content.decode()
    query = {} if response.status_code >= 400 else response.wsgi_request.GET.dict()
    # A stored answer has the form that the first request asked for.
    forms = FORMS if "Idempotent-Replayed" in response.headers else (query,)
    found = [reference.validate(answer.bodies[kind], body, form) for form in forms]
    if all(found):
        yield f"the body is not as described: {found[0]}"
    elif answer.codes and _code_of(body) not in answer.codes:
        yield f"the code {_code_of(body)} is not described"


def _code_of(body: Any) -> str:
    code: str = body.get("code") or body["error"]["code"]
    return code


watch = Watch()


def pytest_sessionstart(session: pytest.Session) -> None:
    send: Callable[..., Any] = Client.request

    def watched(self: Client, **request: Any) -> Any:
        response = send(self, **request)
        sent = response.wsgi_request
        watch.look(sent.META["REQUEST_METHOD"], sent.path_info, response)
        return response

    Client.request = watched  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    found = [*session.config.stash.get(FAULTS, []), *watch.faults()]
    session.config.stash[FAULTS] = found
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_described"] = found
    elif found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """A worker of pytest-xdist is done."""
    node.config.stash.setdefault(FAULTS, []).extend(getattr(node, "workeroutput", {}).get("not_described", []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = config.stash.get(FAULTS, [])
    if found:
        terminalreporter.section("answers that the reference does not describe", red=True)
        for line in found:
            terminalreporter.write_line(line)
