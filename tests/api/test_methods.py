"""Methods: which there are, HEAD wherever GET, OPTIONS everywhere."""

from typing import Any

import pytest

from tests.api.wire import error_of, send
from tests.conftest import Caller

READ, ITEM = {"GET", "HEAD", "OPTIONS"}, {"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
METHODS = {
    "/users": READ | {"POST"},
    "/users/{id}": ITEM,
    "/users/{id}/orders": READ,
    "/users/{id}/payments": READ,
    "/users/{id}/posts": READ | {"POST"},
    "/orders": READ | {"POST"},
    "/orders/{order}": READ,
    "/payments": READ | {"POST"},
    "/payments/{payment}": READ,
    "/posts": READ,
    "/posts/{post}": ITEM,
    "/posts/{post}/comments": READ | {"POST"},
    "/comments/{comment}": ITEM,
    "/api/v1/users": READ | {"POST"},
    "/api": READ,
    "/api/v1": READ,
    "/api/protected": READ,
    "/": READ,
    "/openapi.json": READ,
    "/docs": READ,
    "/docs/errors": READ,
    "/health/live": READ,
    "/health/ready": READ,
    "/favicon.ico": READ,
    "/static/config/browsable.js": READ,
}
KNOWN = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
UNKNOWN = ["BREW", "PROPFIND", "QUERY", "LIST", "CREATE", "DISPATCH", "INITIAL", "X-A", "A" * 2_000]


@pytest.fixture
def address(user: Caller):
    post = user.post(f"/users/{user.user.pk}/posts", {"title": "a"}).data["id"]
    ids = {
        "id": user.user.pk,
        "order": user.post("/orders", {"item": "a", "qty": 1}).data["id"],
        "payment": user.post("/payments", {"amount": 1}, idempotency_key="k").data["id"],
        "post": post,
        "comment": user.post(f"/posts/{post}/comments", {"text": "a"}).data["id"],
    }
    return lambda path: path.format(**ids)


def allowed(response: Any) -> set[str]:
    return {method.strip() for method in response.headers["Allow"].split(",")}


@pytest.mark.parametrize(("path", "methods"), METHODS.items())
def test_method_that_a_resource_lacks_is_refused_with_those_it_has(
    user: Caller, address, path: str, methods: set[str]
) -> None:
    for method in [*(method for method in KNOWN if method not in methods), *UNKNOWN]:
        response = send(method, address(path), b"{}", "application/json", headers=user.headers)
        error_of(response, 405, "METHOD_NOT_ALLOWED")
        assert allowed(response) == methods


QUERIES = ["/users?limit=1&cursor=", "/orders?envelope=false", "/users?limit=0", "/users/0", "/nowhere", "/users/"]


HEADED = [(path, "application/json") for path in [*METHODS, *QUERIES]]


@pytest.mark.parametrize(
    ("path", "accept"), [*HEADED, ("/", "text/html"), ("/users", "text/html"), ("/users/0", "text/html")]
)
def test_head_is_get_without_its_body(user: Caller, address, path: str, accept: str) -> None:
    headers = {**user.headers, "Accept": accept, "X-Request-Id": "same"}
    get, head = (send(method, address(path), headers=headers) for method in ("GET", "HEAD"))
    assert head.status_code == get.status_code
    assert head.getvalue() == b""
    assert headers_but_the_quota(head) == headers_but_the_quota(get)
    # Files, if they are.
    get.close()
    head.close()


def headers_but_the_quota(response: Any) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name != "RateLimit"}


@pytest.mark.parametrize("path", ["/users", "/orders"])
def test_head_needs_the_same_credential_as_get(db: None, path: str) -> None:
    assert [send(method, path).status_code for method in ("GET", "HEAD")] == [401, 401]


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_method_is_not_overridden_by_a_header(user: Caller, header: str) -> None:
    address = f"/users/{user.user.pk}"
    headers = {**user.headers, header: "DELETE"}
    assert send("GET", f"{address}?_method=DELETE", headers=headers).status_code == 200
    error_of(send("POST", address, b"{}", "application/json", headers=headers), 405, "METHOD_NOT_ALLOWED")
    assert user.get(address).status == 200
