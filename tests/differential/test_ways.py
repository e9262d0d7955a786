"""The shorter way of plain requests (config.fastpath) gives what Django's own way does: every header and byte."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.db import transaction
from django.test import Client, RequestFactory
from django.test.client import ClientHandler

from config.fastpath import handler
from tests.conftest import Caller, new_client, with_bearer_of
from tests.contract.routes import Route, root_only, routes
from tests.contract.test_every_endpoint import fill

ROUTES = routes()
QUERIES = ("", "envelope=false", "fields=id", "nothing=1", "version=2", "sort=nothing", "page=2", "cursor=", "limit=x")
HEADERS: tuple[dict[str, str], ...] = (
    {"Accept": "application/problem+json"},
    {"Accept": "application/vnd.users.v2+json"},
    {"Accept-Encoding": "gzip"},
    {"If-None-Match": "*"},
    {"If-Match": '"another"'},
    {"If-Match": "no tag"},
    {"X-Request-Id": "mine"},
)
# Every count of a request moves them.
MOVING = ("RateLimit", "Request-Id", "Retry-After")


def whole_way() -> Client:
    client = Client(raise_request_exception=False)
    client.handler = ClientHandler(enforce_csrf_checks=True)
    client.handler.load_middleware()
    return client


@pytest.fixture(scope="module")
def django() -> Client:
    return whole_way()


def sent(client: Client, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Any:
    """What a client gets, after which the database is as it was."""
    with transaction.atomic():
        response = client.generic(method, path, body, "application/json", headers={"X-Request-Id": "one", **headers})
        transaction.set_rollback(True)
    told = {name: value for name, value in response.headers.items() if name not in MOVING}
    return response.status_code, told, {name: name in response.headers for name in MOVING}, response.content


def compare(django: Client, caller: Caller, method: str, path: str, body: bytes = b"", **headers: str) -> None:
    credential = caller.headers or {}
    request = RequestFactory().generic(method, path, body, "application/json", headers={**credential, **headers})
    assert handler.plain(request.environ), path
    answers = [sent(client, method, path, {**credential, **headers}, body) for client in (new_client(), django)]
    short, whole = answers
    assert set(short[1].items()) ^ set(whole[1].items()) == set()
    assert short == whole


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_methods(django: Client, user: Caller, nobody: Caller, ids: Any, route: Route) -> None:
    bearer = with_bearer_of(user.user)
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"):
        compare(django, bearer, method, fill(route, ids))
    for caller in (nobody, Caller(headers={"X-API-Key": "none"})):
        compare(django, caller, "GET", fill(route, ids))
    for prefix in ("/api", "/api/v2", "/api/v7"):
        compare(django, bearer, "GET", fill(route, ids, prefix))


@pytest.mark.parametrize("route", [route for route in ROUTES if "GET" in route.methods], ids=str)
def test_queries_and_headers(django: Client, admin: Caller, ids: Any, route: Route) -> None:
    bearer = with_bearer_of(admin.user)
    for query in QUERIES:
        compare(django, bearer, "GET", f"{fill(route, ids)}?{query}")
    for headers in HEADERS:
        compare(django, bearer, "GET", fill(route, ids), **headers)


@pytest.mark.parametrize("path", ["/users/0", "/users/x", "/users/9999999999999999999", "/users/٢", "/users/1/posts/2"])
def test_addresses(django: Client, admin: Caller, path: str) -> None:
    answers = [sent(client, "GET", f"/api/v1{path}", admin.headers or {}) for client in (new_client(), django)]
    short, whole = answers
    assert set(short[1].items()) ^ set(whole[1].items()) == set()
    assert short == whole


def test_answers_that_no_view_gives(
    django: Client, nobody: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMIT_ANONYMOUS = 1
    with transaction.atomic():
        assert new_client().put("/api/v1/users").status_code == 405
        assert new_client().put("/api/v1/users").status_code == 429
    compare(django, nobody, "PUT", "/api/v1/users")
    settings.RATE_LIMIT_ANONYMOUS = 0
    monkeypatch.setattr("config.api.views.Conventions.settle", lambda *arguments: 1 / 0)
    short, whole = (sent(client, "GET", "/api/v1/versions", {}) for client in (new_client(), django))
    # That there was a look at the session is of no use in an answer that nothing keeps.
    assert (short[0], short[1]) == (500, whole[1] | {"Vary": "Accept, origin"})


ATTRIBUTES = (
    *("method", "path", "path_info", "scheme", "headers", "encoding", "content_type", "content_params"),
    *("GET", "POST", "FILES", "COOKIES"),
)


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=latin-1", "application/x-www-form-urlencoded", "none; charset=x", "=;"]
)
@pytest.mark.parametrize("query", ["", "a=1&a=2&b=", "a=%C3%A9&b", "a=é"])
@pytest.mark.parametrize("body", [b"", b"a=%C3%A9"])
def test_request_is_as_django_makes_it(query: str, content_type: str, body: bytes) -> None:
    def told(make: Callable[[dict[str, Any]], Any]) -> list[Any]:
        address = f"/api/v1/users/7/orders?{query}"
        environ = RequestFactory().generic("POST", address, body, content_type, secure=True).environ
        request = make({**environ, "wsgi.input": BytesIO(body + b"more")})
        facts = [request.body, request.get_full_path(), request.build_absolute_uri()]
        return facts + [getattr(request, name) for name in ATTRIBUTES]

    assert told(handler.plain) == told(WSGIRequest)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/v1/users", {"Cookie": "sessionid=1"}),
        ("/api/v1/users", {"Origin": "https://example.com"}),
        ("/api/v1/users", {"Access-Control-Request-Method": "GET"}),
        ("/api/v1/users", {"Accept": "text/html"}),
        ("/api/v1/users", {"Accept": "image/png"}),
        ("/api/v1/users", {"Host": "evil.example"}),
        ("/api/v1/users/", {}),
        ("/api/v1/nothing", {}),
        ("/api/v1/users/\0", {}),
        ("/admin/", {}),
        ("/static/config/browsable.js", {}),
        ("/oauth/token", {}),
    ],
)
def test_whole_way_is_taken_where_more_has_a_part(path: str, headers: dict[str, str]) -> None:
    assert not handler.plain(RequestFactory().get(path, headers=headers).environ)


def test_whole_way_is_taken_below_a_prefix_of_the_server(settings: Any) -> None:
    environ = RequestFactory().get("/api/v1/users").environ
    assert handler.plain({**environ})
    assert not handler.plain({**environ, "SCRIPT_NAME": "/users-service"})
    settings.FORCE_SCRIPT_NAME = "/users-service"
    assert not handler.plain(environ)


def test_pages_for_people_take_the_whole_way() -> None:
    pages = [path for path in root_only() if path.startswith(("/docs", "/session", "/oauth/g", "/admin"))]
    assert pages
    for path in pages:
        assert not handler.plain(RequestFactory().get(path, headers={"Accept": "text/html"}).environ)


def test_every_middleware_left_out_is_one_that_there_is() -> None:
    assert handler.LEFT_OUT.keys() < set(settings.MIDDLEWARE)
