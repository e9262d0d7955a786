"""The OpenAPI document: the bounds of every field, and examples that are valid and true."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import jsonschema_rs
import pytest

from accounts.services import create_api_key
from config.api.schema.generator import get_document
from config.api.versions import versioning
from config.events.representation import Place, seal_place
from tests.conftest import with_password
from tests.events.webhooks.rows import make_pair
from tests.plugins.described import close
from users.models import User

PASSWORD = "correct horse battery staple"
VERSIONS = ["1", "2"]
# Their body is a credential, and the one of the example is not valid.
CREDENTIALS = ("/login", "/token/refresh", "/logout")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def document(version):
    return get_document(versioning.get_versions()[version])


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def walk(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every object of a document, with the path to it."""
    if isinstance(value, dict):
        yield where, value
        for name, inner in value.items():
            yield from walk(inner, f"{where}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, f"{where}/{index}")


def resolve(document: Any, one: Any) -> Any:
    while "$ref" in one:
        reference, one = one["$ref"], document
        for part in reference.removeprefix("#/").split("/"):
            one = one[part]
    return one


def is_unbounded(schema: Any) -> bool:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "enum" in schema or "const" in schema:
        return False
    return (
        ("string" in kinds and "maxLength" not in schema)
        or ("integer" in kinds and not {"minimum", "maximum"} <= schema.keys())
        or ("number" in kinds and not {"minimum", "maximum"} <= schema.keys())
        or ("array" in kinds and "maxItems" not in schema)
    )


def test_every_field_is_bounded(document):
    schemas = [
        (where, one)
        for where, one in walk({name: document[name] for name in ("paths", "components")})
        if isinstance(one.get("type"), str | list) and "securitySchemes" not in where and "/example" not in where
    ]
    assert len(schemas) > 300
    assert [where for where, one in schemas if is_unbounded(one)] == []


def test_integers_are_of_64_bits_and_nothing_is_null_alone(document):
    schemas = [one for _, one in walk(document) if "type" in one]
    bounds = {one[name] for one in schemas for name in ("minimum", "maximum") if name in one}
    assert {bound for bound in bounds if not -(2**63) <= bound < 2**63} == set()
    assert [one for one in schemas if one["type"] == "null"] == []


def test_answers_are_open_and_requests_are_closed(document, version):
    """A client that is strict about what it knows goes on when an answer gets a new field."""

    def find_closed(root: Any) -> set[str]:
        found, seen, waiting = set(), set(), [root]
        while waiting:
            for _, one in walk(waiting.pop()):
                found |= {str(one)} if one.get("additionalProperties") is False else set()
                name = one.get("$ref")
                if name and name not in seen:
                    seen.add(name)
                    waiting.append(resolve(document, one))
        return found

    for path, method, operation in operations(document):
        assert find_closed(operation["responses"]) == set(), (path, method)
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body and version == "2":
            assert find_closed(body["schema"]) != set(), (path, method)


def test_position_in_a_list_is_bounded_at_64_bits(document):
    for name in ("page", "offset"):
        schema = document["components"]["parameters"][name]["schema"]
        assert (schema["format"], schema["maximum"]) == ("int64", 2**63 - 1)


def test_filter_takes_every_text_that_its_field_can_have(document):
    checked = set()
    for path, method, operation in operations(document):
        media = operation["responses"].get("200", {}).get("content", {}).get("application/json")
        data = resolve(document, media["schema"])["properties"].get("data", {}) if media else {}
        if method != "get" or data.get("type") != "array":
            continue
        fields = resolve(document, data["items"])["properties"]
        for parameter in (resolve(document, one) for one in operation["parameters"]):
            field = fields.get(parameter["name"], {})
            if "maxLength" in field and "maxLength" in parameter["schema"]:
                assert parameter["schema"]["maxLength"] >= field["maxLength"], (path, parameter["name"])
                checked.add(parameter["name"])
    assert {"email", "external_id"} <= checked


def test_operation_that_fails_a_precondition_takes_the_header_that_states_it(document):
    for path, method, operation in operations(document):
        names = {resolve(document, one)["name"] for one in operation["parameters"]}
        assert ("412" in operation["responses"]) == ("If-Match" in names), (path, method)


def test_every_operation_of_a_deprecated_version_is_deprecated(document, version):
    for path, _, operation in operations(document):
        assert operation.get("deprecated", False) == (version == "1" and path.startswith("/api/")), path


def test_every_example_is_valid(document):
    components = close(document["components"])

    @cache
    def compiled(schema: str) -> Any:
        whole = {**close(json.loads(schema)), "components": components}
        return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)

    def check(schema: Any, example: Any, where: str) -> None:
        try:
            compiled(json.dumps(schema)).validate(example)
        except jsonschema_rs.ValidationError as error:
            pytest.fail(f"{where}: {error.message}")

    checked = 0
    for where, media in walk(document):
        if "schema" not in media:
            continue
        shown = [media["example"]] if "example" in media else []
        shown += [resolve(document, one)["value"] for one in media.get("examples", {}).values()]
        for example in shown:
            check(media["schema"], example, where)
            checked += 1
    assert checked > 150


# A request of an administrator that is refused; `{id}` is the administrator's own.
REFUSED: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "VALIDATION_ERROR": ("PATCH", "/users/{id}", {"email": "nobody"}, {}),
    "MALFORMED_JSON": ("PATCH", "/users/{id}", None, {"raw": b" "}),
    "INVALID_CURSOR": ("GET", "/users?cursor=x", None, {}),
    "IDEMPOTENCY_KEY_REQUIRED": ("POST", "/payments", {"amount": 1}, {}),
    "IDEMPOTENCY_KEY_INVALID": ("POST", "/payments", {"amount": 1}, {"idempotency_key": "a,b"}),
    "IDEMPOTENCY_KEY_REUSED": ("POST", "/payments", {"amount": 2}, {"idempotency_key": "used"}),
    "CREDENTIAL_CONFLICT": ("GET", "/users", None, {"authorization": "Basic eDp5"}),
    "NOT_FOUND": ("GET", "/users/9223372036854775807", None, {}),
    "NOT_ACCEPTABLE": ("GET", "/users/{id}", None, {"accept": "image/png"}),
    "CONFLICT": ("PATCH", "/users/{id}", {"email": "taken@example.com"}, {}),
    "PRECONDITION_FAILED": ("PATCH", "/users/{id}", {"name": "N"}, {"if_match": '"x"'}),
    "UNSUPPORTED_MEDIA_TYPE": ("POST", "/payments", {}, {"content_type": "text/xml"}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_example_of_an_error_is_what_the_service_answers(admin, make_user, document, version, code):
    make_user(email="taken@example.com")
    admin.post("/api/v1/payments", {"amount": 1}, idempotency_key="used")
    method, path, body, headers = REFUSED[code]
    answer = admin(method, f"/api/v{version}{path.format(id=admin.user.pk)}", body, **headers)
    assert answer.body == document["components"]["examples"][code]["value"]


def test_example_of_an_expired_cursor_is_what_the_service_answers(admin, document, version):
    answer = admin.get(f"/api/v{version}/events?cursor={seal_place(Place(uuid4(), 1, 1))}")
    assert answer.body == document["components"]["examples"]["CURSOR_EXPIRED"]["value"]


def test_example_of_a_refused_version_names_those_there_are(nobody, document, settings):
    oldest, newest = settings.API_VERSIONS[0], settings.API_VERSIONS[-1]
    refused = {
        "VERSION_CONFLICT": f"/api/v{oldest}/users?version={newest}",
        "UNSUPPORTED_VERSION": f"/api/v{newest.number + 1}/users",
    }
    for code, path in refused.items():
        assert nobody.get(path).body == document["components"]["examples"][code]["value"]


def test_id_of_an_address_is_of_the_type_of_the_id_of_its_resource(document):
    checked = set()
    for path, method, operation in operations(document):
        parameters = {one["name"]: one for one in (resolve(document, one) for one in operation["parameters"])}
        if path.endswith("/{id}"):
            read = document["paths"][path].get("get") or document["paths"][path.removesuffix("/{id}")]["get"]
            media = read["responses"]["200"]["content"]["application/json"]
            data = resolve(document, resolve(document, media["schema"])["properties"]["data"])
            own = resolve(document, data.get("items", data))["properties"]["id"]
            schema = parameters["id"]["schema"]
            assert (schema["type"], schema.get("format")) == (own["type"], own.get("format")), (path, method)
            checked.add((path.rpartition("/api/")[2].split("/")[1], schema.get("format")))
    assert {("sessions", "uuid"), ("users", "int64"), ("comments", "int64")} <= checked


def test_every_operation_is_described_for_callers(document):
    summaries = [operation["summary"] for _, _, operation in operations(document)]
    assert len(set(summaries)) == len(summaries)
    for path, method, operation in operations(document):
        assert re.fullmatch(r"[A-Z][^.:;]+", operation["summary"]), (path, method)
        assert re.match(r"[A-Z][^\n]+\.", operation["description"]), (path, method)


def test_answers_are_described_as_one_type(document):
    """A generated client returns the plain type, with nothing to find out about it."""
    for path, method, operation in operations(document):
        found = {}
        for status, response in operation["responses"].items():
            for media in resolve(document, response).get("content", {}).values() if status < "300" else ():
                schema = resolve(document, media["schema"])
                found[repr(media["schema"])] = status
                assert "anyOf" not in schema, (path, method)
                if "data" in schema.get("properties", {}):
                    assert "anyOf" not in resolve(document, schema["properties"]["data"]), (path, method)
        assert len(found) <= 1, (path, method, found)


def test_what_becomes_of_lines_is_described_in_words_beside_the_one_type(document, version):
    described = set()
    for path, _, operation in operations(document):
        if "application/x-ndjson" in operation.get("requestBody", {}).get("content", {}):
            response = operation["responses"]["207"]
            (text,) = re.findall(r"```json\n(.*)\n```", response["description"], re.DOTALL)
            created = operation["responses"]["201"]["content"]["application/json"]["example"]["data"]
            row = {name: value for name, value in created.items() if name != "_links"}
            error = {"code": "MALFORMED_JSON", "message": "The line is not a JSON object: it is empty.", "details": []}
            data = [{"line": 1, "status": 201, "data": row}, {"line": 2, "status": 400, "error": error}]
            assert json.loads(text) == {"success": True, "data": data, "meta": {"created": 1}}
            described.add(path)
            parameters = {one["name"]: one for one in (resolve(document, one) for one in operation["parameters"])}
            # A page would send the default with JSON, which is refused.
            assert parameters["partial"]["schema"] == {"type": "boolean"}
    expected = {f"/api/v2/{path}" for path in ("users", "orders", "users/{user_id}/posts")}
    assert described == (expected if version == "2" else set())


def test_example_of_a_list_is_paged_as_the_version_pages(admin, document, version):
    User.objects.exclude(pk=admin.user.pk).delete()
    answer = admin.get(f"/api/v{version}/users")
    example = document["paths"][f"/api/v{version}/users"]["get"]["responses"]["200"]["content"]["application/json"]
    assert answer.meta == example["example"]["meta"]
    assert answer.body["_links"] == example["example"]["_links"]


def test_no_description_tells_of_the_implementation(document):
    descriptions = {one["description"] for _, one in walk(document) if isinstance(one.get("description"), str)}
    assert len(descriptions) > 50
    internal = re.compile(r"\b(DRF|Django|serializers?|transactions?|rolled back|PostgreSQL|middlewares?|viewsets?)\b")
    assert [text for text in descriptions if internal.search(text)] == []


def test_every_resource_and_every_body_has_an_example(document):
    for path, method, operation in operations(document):
        body = operation.get("requestBody", {"content": {}})
        success = resolve(document, operation["responses"].get("200") or operation["responses"].get("201") or {})
        of_resource = path.count("/") > 2 and path.startswith("/api/")
        for media in [*body["content"].values(), *(success.get("content", {}).values() if of_resource else ())]:
            assert "example" in media, (path, method)


def example_of(operation: Any) -> Any:
    return next(iter(operation["requestBody"]["content"].values()))["example"]


@pytest.fixture
def administrator(make_user):
    """An administrator, and a caller with its password."""
    owner = make_user("admin", password=PASSWORD)
    return owner, with_password(owner, PASSWORD)


@pytest.mark.parametrize("method", ["post", "put", "patch"])
def test_every_prefilled_body_succeeds_as_it_stands(administrator, document, version, method):
    owner, caller = administrator
    api = f"/api/v{version}"
    post = caller.post(f"{api}/users/{owner.pk}/posts", {"title": "T"}).data["id"]
    comment = caller.post(f"{api}/posts/{post}/comments", {"text": "C"}).data["id"]
    rows = {"users": owner.pk, "posts": post, "comments": comment, "api-keys": create_api_key(owner, name="k")[0].pk}
    rows["webhooks"] = make_pair(owner)
    sent = 0
    for path, verb, operation in operations(document):
        if (
            verb != method
            or not path.startswith(api)
            or path.endswith((*CREDENTIALS, "{token}"))
            or "requestBody" not in operation
        ):
            continue
        first = path.removeprefix(api).split("/")[1]
        headers = {
            one["name"]: one["example"]
            for one in (resolve(document, parameter) for parameter in operation["parameters"])
            if one["in"] == "header" and "example" in one
        }
        # A separate user: the email of the example would conflict, and its role replace the administrator's.
        row = make_one(caller, api) if first == "users" and method != "post" else rows.get(first)
        address = re.sub(r"\{\w+\}", str(row), path)
        answer = caller(method.upper(), address, example_of(operation), **headers)
        assert answer.status in {200, 201, 202}, (path, answer)
        sent += 1
    assert sent == {"post": 11, "put": 3, "patch": 4}[method]


def make_one(caller, api):
    return caller.post(f"{api}/users", {"name": "Own", "email": "own@example.com"}).data["id"]


def test_the_prefilled_login_is_that_of_the_example_user(make_user, nobody, document, version):
    example = example_of(document["paths"][f"/api/v{version}/login"]["post"])
    make_user(email=example["email"], password=example["password"])
    assert nobody.post(f"/api/v{version}/login", example).status == 200
