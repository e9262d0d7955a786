"""Which requests take the fast path, and what Django's view of them is there."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import request_started
from django.test import RequestFactory
from django.urls import resolve
from hypothesis import given
from hypothesis import strategies as st

from config.fastpath import handler, replacements
from config.fastpath.http import _PLAIN_QUERY, parse_plain_query
from config.http.request_state import STATE, RequestState
from tests.conftest import new_client
from tests.contract.routes import root_only
from tests.system.differential.comparison import Sent, reference_client
from tests.system.differential.strategies import queries
from tests.system.differential.world import LargeWorld

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
    def read(build: Callable[[dict[str, Any]], Any]) -> list[Any]:
        address = f"/api/v1/users/7/orders?{query}"
        environ = RequestFactory().generic("POST", address, body, content_type, secure=True).environ
        request = build({**environ, "wsgi.input": BytesIO(body + b"more")})
        facts = [request.body, request.get_full_path(), request.build_absolute_uri()]
        return facts + [getattr(request, name) for name in ATTRIBUTES]

    assert read(handler.build_request) == read(WSGIRequest)


@given(queries)
def test_plain_query_is_parsed_as_django_parses_it(query: str) -> None:
    environ = RequestFactory().get("/api/v1/users", QUERY_STRING=query).environ
    if _PLAIN_QUERY.fullmatch(query):
        assert dict(parse_plain_query(query).lists()) == dict(WSGIRequest(environ).GET.lists())


@given(st.sampled_from(["/api/v1/users/{}", "/users/{}/orders", "/api/posts/{}/comments"]), st.integers(0, 10**25))
def test_address_leads_to_the_view_of_the_url_map(template: str, number: int) -> None:
    path = template.format(number)
    request, match = handler.build_request(RequestFactory().get(path).environ), resolve(path)
    assert request is not None
    assert request.view_kwargs == match.kwargs
    assert request.resolver_match.func is match.func


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
def test_full_stack_is_taken_where_more_has_a_part(path: str, headers: dict[str, str]) -> None:
    assert not handler.build_request(RequestFactory().get(path, headers=headers).environ)


def test_full_stack_is_taken_for_what_was_refused_before() -> None:
    environ = RequestFactory().get("/api/v1/users").environ
    assert not handler.build_request({**environ, STATE: RequestState(refused=ValueError())})


def test_full_stack_is_taken_below_a_prefix_of_the_server(settings: Any) -> None:
    environ = RequestFactory().get("/api/v1/users").environ
    assert handler.build_request({**environ})
    assert not handler.build_request({**environ, "SCRIPT_NAME": "/users-service"})
    settings.FORCE_SCRIPT_NAME = "/users-service"
    assert not handler.build_request(environ)


def test_full_stack_is_taken_with_a_middleware_that_is_not_known(settings: Any) -> None:
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware", *settings.MIDDLEWARE]
    assert not handler.build_request(RequestFactory().get("/api/v1/users").environ)


def test_full_stack_is_taken_with_a_receiver_that_is_not_known() -> None:
    def receive(**options: Any) -> None: ...

    request_started.connect(receive)
    try:
        assert not handler.build_request(RequestFactory().get("/api/v1/users").environ)
    finally:
        request_started.disconnect(receive)
    assert handler.build_request(RequestFactory().get("/api/v1/users").environ)


def test_pages_for_people_take_the_full_stack() -> None:
    pages = [path for path in root_only() if path.startswith(("/docs", "/session", "/oauth/g", "/admin"))]
    assert pages
    for path in pages:
        assert not handler.build_request(RequestFactory().get(path, headers={"Accept": "text/html"}).environ)


def test_every_middleware_in_the_tables_is_one_that_there_is() -> None:
    assert handler.SKIPPED_MIDDLEWARE.keys() | handler.KEPT_MIDDLEWARE == set(settings.MIDDLEWARE)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/users/0", "/users/x", "/users/9999999999999999999", "/users/1/posts/2", "/users/00001", "/users/1x"]
)
def test_strange_addresses(compare: Any, world: LargeWorld, path: str) -> None:
    headers = world.callers["admin"]["API key"].headers or {}
    is_fast = path != "/users/1/posts/2"
    for method in ("GET", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
        body = b'{"name": "New"}' if method == "PATCH" else b""
        compare(Sent(method, f"/api/v1{path}", body, headers, is_fast=is_fast))


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/users/", "/api/v1/nothing", "/users/%D9%A2", "/api/v1/users/%00", "/api"])
def test_addresses_of_the_full_stack(compare: Any, world: LargeWorld, path: str) -> None:
    headers = world.callers["admin"]["API key"].headers or {}
    compare(*(Sent(method, path, headers=headers, is_fast=path == "/api") for method in ("GET", "HEAD", "OPTIONS")))


@pytest.mark.django_db
def test_fault_of_a_view(compare: Any, world: LargeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.api.views.ConventionsMixin.options", lambda *args, **kwargs: 1 / 0)
    headers = world.callers["user"]["JWT"].headers or {}
    compare(Sent("OPTIONS", "/api/v1/orders", headers=headers, is_fault=True))


@pytest.mark.django_db
def test_fault_beside_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full stack looked at the session, which makes Vary longer; in a response that nothing stores."""
    monkeypatch.setattr("config.api.views.ConventionsMixin.finalize_etag", lambda *args, **kwargs: 1 / 0)
    request = Sent("GET", "/api/v1/versions", headers={"X-Request-Id": "one"})
    with replacements.uninstalled():
        expected = request.send(reference_client())
    actual = request.send(new_client())
    assert (expected.status, actual.status, actual.was_fast) == (500, 500, True)
    assert actual.body == expected.body
    counted = {name: actual.headers[name] for name in ("RateLimit", "RateLimit-Policy") if name in actual.headers}
    assert actual.headers == {**expected.headers, **counted, "Vary": "origin, Accept"}
