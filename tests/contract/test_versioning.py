"""Every endpoint × method, and × way to choose a version, against one matrix: status, shape of the body, headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import http_sf
import pytest

from tests.conftest import Answer
from tests.contract.matrix import every_second, lines
from tests.contract.routes import routes

# What an administrator is answered by each endpoint on its own rows, in both versions, however they are chosen.
LINES = {(line.template, line.method): line for line in lines() if line.operation == line.method}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "PROPFIND")
UNDER_API_ONLY = {"login", "logout", "protected", "token/refresh"}
UNDER_API_ONLY |= {"password-resets", "password-resets/<token>", "email-verifications/<token>"}


@dataclass(frozen=True)
class Way:
    """How a version is asked for, which one answers, and the refusal when none does."""

    prefix: str
    query: str
    accept: str
    version: int
    refused: tuple[int, str] | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether it names a version that there never was, whose answer names the default and no notice."""
        return self.refused is not None and self.refused[1] == "UNSUPPORTED_VERSION"


# Each is tried at every endpoint with every method, the others at every second one with one method: the version is
# chosen before the endpoint and the method matter.
WITH_EVERY_METHOD = [
    Way("/api/v1", "", "", 1),
    Way("/api/v2", "", "", 2),
    Way("", "", "application/json", 1),
    Way("/api/v1", "version=2", "", 1, (400, "VERSION_CONFLICT")),
]
OTHERS = [
    Way("/api", "", "", 1),
    Way("", "version=1", "", 1),
    Way("", "version=2", "*/*", 2),
    Way("/api", "version=2", "application/json", 2),
    Way("", "", "application/vnd.api+json;version=2", 2),
    Way("/api", "", "application/vnd.api+json", 1),
    Way("", "", "application/json;version=2", 2),
    Way("/api", "version=2", "application/json; version=2, application/json;q=0.9", 2),
    Way("/api/v2", "", 'application/json;version="2"', 2),
    Way("", "", "application/vnd.users.v2+json", 2),
    Way("/api", "", "application/vnd.users.v1+json", 1),
    Way("/api/v2", "version=2", "application/vnd.users.v2+json, application/vnd.api+json;version=1;q=0.9", 2),
    Way("/api/v2", "", "application/vnd.users.v1+json", 2, (400, "VERSION_CONFLICT")),
    Way("", "version=1", "application/vnd.api+json;version=2", 1, (400, "VERSION_CONFLICT")),
    Way("/api/v1", "", "application/json;version=2", 1, (400, "VERSION_CONFLICT")),
    Way("", "version=2", "application/json;version=1", 1, (400, "VERSION_CONFLICT")),
    Way("/api/v9", "", "", 1, (404, "UNSUPPORTED_VERSION")),
    Way("/api/v01", "", "", 1, (404, "UNSUPPORTED_VERSION")),
    Way("", "version=9", "", 1, (400, "UNSUPPORTED_VERSION")),
    Way("/api", "version=", "", 1, (400, "UNSUPPORTED_VERSION")),
    Way("/api/v2", "version=%00", "", 1, (400, "UNSUPPORTED_VERSION")),
    Way("", "version=1&version=1", "", 1, (400, "VALIDATION_ERROR")),
    Way("", "", "application/vnd.users.v9+json", 1, (406, "UNSUPPORTED_VERSION")),
    Way("/api/v2", "", "application/vnd.api+json;version=", 1, (406, "UNSUPPORTED_VERSION")),
    Way("", "", "application/json;version=9", 1, (406, "UNSUPPORTED_VERSION")),
    Way("/api/v2", "", "application/json;version=1;version=2", 1, (406, "UNSUPPORTED_VERSION")),
    Way("/api", "", "application/vnd.others.v2+json", 1, (406, "NOT_ACCEPTABLE")),
]


def get_method(route):
    return next(method for method in METHODS if method in route.methods - {"OPTIONS"})


# By method, so that the endpoints of each method take both turns.
TURNS = sorted(routes(), key=get_method)


def expected(route, method, way):
    if way.refused:
        return way.refused[0]
    line = LINES.get((route.template, "GET" if method == "HEAD" else method))
    if method == "OPTIONS" or line is None:
        return 200 if method == "OPTIONS" else 405
    return line.cells(by_password=True)["admin", "own"].status


def check_notice(answer, way, path):
    links = answer.headers.get("Link", "")
    if way.version == 2 or way.is_unknown:
        assert not {"Deprecation", "Sunset"} & set(answer.headers)
        assert not {"deprecation", "sunset", "successor-version"} & set(re.findall(r'rel="([^"]*)"', links))
        return
    # Read by the parser of the standard that the header is written in (RFC 9651), not by a pattern of our own.
    assert http_sf.parse(answer.headers["Deprecation"].encode(), tltype="item")[0] == datetime(2026, 12, 1, tzinfo=UTC)
    assert parsedate_to_datetime(answer.headers["Sunset"]) == datetime(2028, 12, 1, tzinfo=UTC)
    assert '</docs/versions>; rel="deprecation"' in links
    assert '</docs/versions>; rel="sunset"' in links
    assert f'</api/v2{path}>; rel="successor-version"' in links


def check_body(answer, method, way, status, *, is_feed):
    if method == "HEAD" or status == 204:
        assert answer.body is None
    elif status >= 400:
        assert set(answer.body) == {"success", "error"}
        assert set(answer.error) == {"code", "message", "details"}
    elif "meta" in answer.body:
        by_cursor = {"nextCursor", "prevCursor", "hasMore"}
        by_default = by_cursor if way.version == 2 else {"page", "limit", "total", "totalPages"}
        assert set(answer.meta) == (by_cursor - {"prevCursor"} if is_feed else by_default)
        assert all(link["href"].startswith(way.prefix) for link in answer.body["_links"].values())
    else:
        assert set(answer.body) == {"success", "data"}


@pytest.mark.django_db
@pytest.mark.parametrize("route", routes(), ids=str)
def test_every_way_to_choose_a_version(world, route):
    admin, target = world.credentials["admin"]["JWT"], world.people["admin"]
    own_method = get_method(route)
    path = world.path(route, target, "")
    for way in (*WITH_EVERY_METHOD, *every_second(TURNS.index(route), OTHERS)):
        if way.prefix == "" and route.template in UNDER_API_ONLY:
            continue
        address = f"{way.prefix}{path}{'?' if way.query else ''}{way.query}"
        headers = {"Accept": way.accept} if way.accept else {}
        for method in METHODS if way in WITH_EVERY_METHOD else (own_method,):
            line = LINES.get((route.template, method))
            if line:
                answer = Answer(world.fetch(line, address, admin, target, **headers))
            else:
                answer = admin(method, address, {}, **headers)
            told = (way, method, answer)
            status = expected(route, method, way)
            assert answer.status == status, told
            if way.refused and method != "HEAD":
                assert answer.code == way.refused[1], told
            assert answer.headers["API-Version"] == str(way.version), told
            assert {"Accept", "Authorization", "X-API-Key", "Cookie"} <= set(answer.headers["Vary"].split(", ")), told
            assert answer.headers["Request-Id"], told
            if status == 200 and method == "GET":
                expected_control = "no-store" if route.view.cache_control == "no-store" else "private, no-cache"
                assert answer.headers["Cache-Control"] == expected_control, told
            if status == 405:
                assert method not in answer.headers["Allow"].split(", "), told
                assert method == "HEAD" or answer.code == "METHOD_NOT_ALLOWED", told
            check_notice(answer, way, path)
            if status == 200 and method != "OPTIONS" and route.template.endswith("/archive"):
                assert answer.headers["Content-Type"] == "application/x-ndjson", told
                continue
            if status != 204:
                assert answer.headers["Content-Type"] == "application/json", told
            check_body(answer, method, way, status, is_feed=route.template == "events")


def test_links_keep_the_form_that_the_caller_used(admin, user):
    for form in ("/api/v2{}", "/api{}", "{}", "/api{}?version=2", "{}?version=1"):
        data = admin.get(form.format(f"/users/{user.user.pk}")).data
        assert data["_links"]["orders"]["href"] == form.format(f"/users/{user.user.pk}/orders")
        page = admin.get(form.format("/users")).body["_links"]
        assert {urlsplit(link["href"]).path for link in page.values()} == {form.partition("?")[0].format("/users")}
        assert all(form.partition("?")[2] in link["href"] for link in page.values())
