"""Methods: which there are, HEAD wherever GET, OPTIONS everywhere."""

from typing import Any

import pytest

from tests.api.wire import error_of, send
from tests.conftest import Caller

READ = {"GET", "HEAD", "OPTIONS"}
# What tests/contract does not walk: addresses without a version.
METHODS = {
    "/users": READ | {"POST"},
    **dict.fromkeys(["/api", "/api/v1", "/", "/openapi.json", "/docs", "/docs/errors", "/favicon.ico"], READ),
    **dict.fromkeys(["/health/live", "/health/ready", "/static/config/browsable.js"], READ),
}
KNOWN = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
UNKNOWN = ["BREW", "PROPFIND", "QUERY", "LIST", "CREATE", "DISPATCH", "INITIAL", "X-A", "A" * 2_000]


def allowed(response: Any) -> set[str]:
    return {method.strip() for method in response.headers["Allow"].split(",")}


@pytest.mark.parametrize(("path", "methods"), METHODS.items())
def test_method_that_a_resource_lacks_is_refused_with_those_it_has(user: Caller, path: str, methods: set[str]) -> None:
    for method in [*(method for method in KNOWN if method not in methods), *UNKNOWN]:
        response = send(method, path, b"{}", "application/json", headers=user.headers)
        error_of(response, 405, "METHOD_NOT_ALLOWED")
        assert allowed(response) == methods


QUERIES = ["/users?limit=1&cursor=", "/orders?envelope=false", "/users?limit=0", "/users/0", "/nowhere", "/users/"]


HEADED = [(path, "application/json") for path in [*METHODS, *QUERIES]]


@pytest.mark.parametrize(
    ("path", "accept"), [*HEADED, ("/", "text/html"), ("/users", "text/html"), ("/users/0", "text/html")]
)
def test_head_is_get_without_its_body(user: Caller, path: str, accept: str) -> None:
    headers = {**user.headers, "Accept": accept, "X-Request-Id": "same"}
    get, head = (send(method, path, headers=headers) for method in ("GET", "HEAD"))
    assert head.status_code == get.status_code
    assert head.getvalue() == b""
    assert headers_but_the_quota(head) == headers_but_the_quota(get)
    # Files, if they are.
    get.close()
    head.close()


def headers_but_the_quota(response: Any) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name != "RateLimit"}


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_method_is_not_overridden_by_a_header(user: Caller, header: str) -> None:
    address = f"/users/{user.user.pk}"
    headers = {**user.headers, header: "DELETE"}
    assert send("GET", f"{address}?_method=DELETE", headers=headers).status_code == 200
    error_of(send("POST", address, b"{}", "application/json", headers=headers), 405, "METHOD_NOT_ALLOWED")
    assert user.get(address).status == 200
