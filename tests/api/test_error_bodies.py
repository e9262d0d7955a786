"""One error body for everything, its problem details, and the Request-Id that every answer carries."""

import json
from typing import Any

import pytest
from django.conf import settings

from tests.api.wire import error_of, send
from tests.conftest import Caller

JSON = "application/json"
# What goes wrong: how the answer is asked for, and which error it must be.
ERRORS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "query": ("GET", "/users?limit=0", {}, 400, "VALIDATION_ERROR"),
    "body": ("POST", "/orders", {"body": b"{}", "content_type": JSON}, 400, "VALIDATION_ERROR"),
    "malformed": ("POST", "/orders", {"body": b"{", "content_type": JSON}, 400, "MALFORMED_JSON"),
    "cursor": ("GET", "/users?cursor=x", {}, 400, "INVALID_CURSOR"),
    "bad host": ("GET", "/users", {"HTTP_HOST": "evil.example"}, 400, "VALIDATION_ERROR"),
    "broken host": ("GET", "/openapi.json", {"HTTP_HOST": "a b<>"}, 400, "VALIDATION_ERROR"),
    "bad host of an unknown path": ("GET", "/nowhere", {"HTTP_HOST": "evil.example"}, 400, "VALIDATION_ERROR"),
    "no credential": ("GET", "/users", {"headers": {}}, 401, "UNAUTHENTICATED"),
    "bad key": ("GET", "/users", {"headers": {"X-API-Key": "x"}}, 401, "INVALID_CREDENTIALS"),
    "forbidden": ("POST", "/users", {"body": b"{}", "content_type": JSON}, 403, "FORBIDDEN"),
    "unknown path": ("GET", "/nowhere", {}, 404, "NOT_FOUND"),
    "unknown path under the prefix": ("GET", "/api/v1/nowhere", {}, 404, "NOT_FOUND"),
    "unknown path, posted": ("POST", "/nowhere", {"body": b"{}", "content_type": JSON}, 404, "NOT_FOUND"),
    "unknown id": ("GET", "/users/999999999", {}, 404, "NOT_FOUND"),
    "method": ("DELETE", "/orders", {}, 405, "METHOD_NOT_ALLOWED"),
    "unknown method": ("BREW", "/orders", {}, 405, "METHOD_NOT_ALLOWED"),
    "too large": ("POST", "/orders", {"body": b" " * 1_048_577, "content_type": JSON}, 413, "PAYLOAD_TOO_LARGE"),
    "media type": ("POST", "/orders", {"body": b"{}", "content_type": "text/xml"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
    "too many parameters": ("GET", "/users?" + "a=1&" * 1_001, {}, 400, "VALIDATION_ERROR"),
    "CSRF in the admin": ("POST", "/admin/login/", {}, 403, "FORBIDDEN"),
}


def ask(user: Caller, method: str, path: str, sent: dict[str, Any], **headers: str) -> Any:
    return send(method, path, **{**sent, "headers": {**sent.get("headers", user.headers), **headers}})


# Of equals the first.
NO_PROBLEM = (
    *("", "*/*", "application/json", "application/json, application/problem+json;q=0"),
    *("application/json, application/problem+json;q=0.5", "application/json, application/problem+json"),
    *("application/vnd.users.v1+json, application/problem+json", "*/*, application/problem+json"),
)
PROBLEM = (
    *("application/problem+json", "Application/Problem+JSON", "application/problem+json, application/json"),
    "application/problem+json, application/vnd.users.v1+json",
    "application/json;q=0.5, application/problem+json;q=0.6",
)


@pytest.mark.parametrize(("method", "path", "sent", "status", "code"), ERRORS.values(), ids=ERRORS)
def test_error_has_the_one_body_or_is_problem_details(
    user: Caller, *, method: str, path: str, sent: dict[str, Any], status: int, code: str
) -> None:
    error = error_of(ask(user, method, path, sent, Accept=NO_PROBLEM[-1]), status, code)
    response = ask(user, method, path, sent, Accept=PROBLEM[-1])
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    assert response.headers["Request-Id"]
    problem = json.loads(response.content)
    assert (problem["status"], problem["detail"]) == (status, error["message"])
    assert (problem["code"], problem["details"]) == (code, error["details"])
    assert problem["title"]
    assert problem["type"] == f"{settings.PUBLIC_URL}/docs/errors#{code}"
    assert not {"success", "error"} & set(problem)


def test_error_is_problem_details_where_they_are_preferred(user: Caller) -> None:
    for accept in NO_PROBLEM:
        error_of(send("GET", "/users?limit=0", headers={**user.headers, "Accept": accept}), 400, "VALIDATION_ERROR")
    for accept in PROBLEM:
        response = send("GET", "/users?limit=0", headers={**user.headers, "Accept": accept})
        assert (response.status_code, response.headers["Content-Type"]) == (400, "application/problem+json"), accept


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_session_cookie_of_no_session_is_no_credential(db: None, accept: str) -> None:
    for path in ["/users", "/users?limit=1"]:
        for cookie in [
            "x",
            "a" * 32,
            "a" * 8_000,
            '"\\000aaaaaaaaaaaa"',
            '"aaaaaaaa\\000"',
            '"\\377\\376aaaaaaaaaaa"',
            '"\\012aaaaaaaaaa"',
            "é" * 20,
            '"',
        ]:
            response = send("GET", path, headers={"Cookie": f"sessionid={cookie}", "Accept": accept})
            assert response.status_code == 401
            assert b"UNAUTHENTICATED" in response.content


def test_field_named_in_an_error_is_always_encodable(user: Caller) -> None:
    response = send("GET", "/users?fields=%ff%00\u202e", headers=user.headers)
    error = error_of(response, 400, "VALIDATION_ERROR")
    assert {detail["field"] for detail in error["details"]} == {"fields"}


PATHS = ["/", "/users", "/users/0", "/users/", "/nowhere", "/health/live", "/api/protected", "/docs", "/admin/login/"]
SANE = ["a", "0", "A.b_c~d-e", "-", "~", "." * 128, "f" * 128, "550e8400-e29b-41d4-a716-446655440000"]
INSANE = [
    "",
    " ",
    "a b",
    "a" * 129,
    "a" * 8_000,
    "a,b",
    "a;b",
    'a"b',
    "a/b",
    "<script>",
    "é",
    "a\tb",
    "a=b",
    "{}",
    "a:b",
    "+",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_the_request_id_it_was_sent(user: Caller, path: str) -> None:
    for sane in SANE:
        assert send("GET", path, headers={**user.headers, "X-Request-Id": sane}).headers["Request-Id"] == sane


@pytest.mark.parametrize("path", PATHS)
def test_insane_request_id_is_replaced(user: Caller, path: str) -> None:
    given = [
        send("GET", path, headers={**user.headers, "X-Request-Id": insane}).headers["Request-Id"] for insane in INSANE
    ]
    given += [send("GET", path, headers=user.headers).headers["Request-Id"] for _ in range(2)]
    assert not set(given) & set(INSANE)
    assert len(set(given)) == len(given)
    assert all(16 <= len(request_id) <= 128 and request_id.isascii() for request_id in given)
