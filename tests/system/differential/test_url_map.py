"""Every address, with every method, kind of credential, role and version, on both paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import PASSWORD, Caller
from tests.contract.routes import Route, routes
from tests.system.differential.comparison import ON_REFERENCE, Sent
from tests.system.differential.world import LargeWorld

pytestmark = pytest.mark.django_db

ROUTES = routes()
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")
ROLES = ("user", "support", "admin", "nobody")
UNDER_API_ONLY = (
    *("login", "logout", "protected", "token/refresh"),
    *("email-verifications/<token>", "password-resets", "password-resets/<token>"),
)
VERSIONS: Sequence[tuple[str, str, str]] = (
    # The prefix, the Accept header, and the query.
    ("", "", ""),
    ("/api", "", ""),
    ("/api/v2", "", ""),
    ("/api/v7", "", ""),
    ("/api", "application/vnd.users.v1+json", ""),
    ("/api", "application/vnd.users.v2+json", ""),
    ("/api", "application/vnd.users.v2+json;q=0.2, application/json;q=0.1", ""),
    ("/api", "application/vnd.api+json;version=2", ""),
    ("/api", "application/json;version=2", ""),
    ("/api", "", "version=2"),
    ("", "", "version=2"),
    ("/api", "", "version=3"),
    ("/api", "", "version=2&version=2"),
    ("/api/v1", "", "version=2"),
    ("/api/v1", "application/vnd.users.v2+json", ""),
    ("/api/v2", "application/problem+json", "version=2"),
)
every_route = pytest.mark.parametrize("route", ROUTES, ids=str)


def build_body(route: Route, method: str, world: LargeWorld) -> bytes:
    """A body that the endpoint takes."""
    bodies: dict[str, dict[str, Any]] = {
        "users": {"name": "New", "email": "new@example.com"},
        "users/<id>": {"name": "New"} if method == "PATCH" else {"name": "New", "email": "new@example.com"},
        "orders": {"item": "Book", "qty": 1},
        "payments": {"amount": 5.25},
        "users/<user_id>/posts": {"title": "New", "body": "New"},
        "posts/<id>": {"title": "New"},
        "posts/<post_id>/comments": {"text": "New"},
        "comments/<id>": {"text": "New"},
        "api-keys": {"name": "New"},
        "api-keys/<api_key_id>/rotations": {},
        "webhooks": {"url": "https://example.com/", "types": ["order.created"]},
        "webhooks/<id>": {"description": "New"},
        "webhooks/<webhook_id>/replays": {"cursor": ""},
        "login": {"email": world.other.email, "password": PASSWORD},
        "token/refresh": {"refresh_token": world.refresh_token},
        "logout": {"refresh_token": world.refresh_token},
    }
    return json.dumps(bodies.get(route.template, {})).encode()


def build_request(
    route: Route, method: str, caller: Caller, world: LargeWorld, *, whose: str = "user", prefix: str = "/api/v1"
) -> Sent:
    headers = dict(caller.headers or {})
    body = build_body(route, method, world) if method in {"POST", "PUT", "PATCH"} else b""
    if route.template == "payments" and method == "POST":
        headers["Idempotency-Key"] = "one"
    path = world.get_path(route, prefix, whose=whose)
    return Sent(
        method,
        path,
        body,
        headers,
        caller.query,
        is_fast="Cookie" not in headers and route.template not in ON_REFERENCE,
    )


@every_route
@pytest.mark.parametrize("role", ROLES)
def test_credentials(compare: Any, world: LargeWorld, route: Route, role: str) -> None:
    methods = sorted({*route.methods, "GET", "HEAD", "POST"})
    for caller in world.callers[role].values():
        for method in methods:
            compare(build_request(route, method, caller, world))


@every_route
@pytest.mark.parametrize("role", ["user", "support", "admin"])
def test_methods_on_rows_of_others(compare: Any, world: LargeWorld, route: Route, role: str) -> None:
    for kind in ("JWT", "API key"):
        for method in METHODS:
            compare(build_request(route, method, world.callers[role][kind], world, whose="other"))


@every_route
def test_versions(compare: Any, world: LargeWorld, route: Route) -> None:
    caller = world.callers["admin"]["JWT"]
    for prefix, accept, query in VERSIONS:
        for method in sorted({*route.methods, "DELETE"}):
            request = build_request(route, method, caller, world, prefix=prefix)
            headers = {**request.headers, **({"Accept": accept} if accept else {})}
            is_fast = request.is_fast and not (prefix == "" and route.template in UNDER_API_ONLY)
            compare(Sent(method, request.path, request.body, headers, query, is_fast=is_fast))


@every_route
@pytest.mark.parametrize("limit", ["PRINCIPAL", "ANONYMOUS"])
def test_quota_is_used_up(compare: Any, world: LargeWorld, settings: Any, route: Route, limit: str) -> None:
    setattr(settings, f"RATE_LIMIT_{limit}", 2)
    caller = world.callers["support"]["OAuth code"] if limit == "PRINCIPAL" else Caller()
    methods = sorted(route.methods)
    requests = [build_request(route, method, caller, world) for method in (*methods, "PROPFIND", "GET", "OPTIONS")]
    if route.template in UNDER_API_ONLY and limit == "PRINCIPAL":
        requests.append(build_request(route, "GET", caller, world))
    compare(*requests[:4])
