"""What scripts of other origins may do: nothing, until a setting opens it, and never by cookie."""

import pytest
from django.db import connection

from tests.api.limits.quotas import is_counted
from tests.api.wire import send
from tests.conftest import PASSWORD

ORIGIN = "https://app.example"
PREFLIGHT = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}
REQUEST_HEADERS = {
    *("accept", "authorization", "content-type", "idempotency-key", "if-match", "if-none-match", "x-api-key"),
    "x-request-id",
}
EXPOSED = {
    *("api-version", "deprecation", "etag", "idempotent-replayed", "link", "location", "ratelimit"),
    *("ratelimit-policy", "request-id", "retry-after", "sunset", "www-authenticate", "x-total-count"),
}


@pytest.fixture
def opened(settings):
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]


def names(response, header):
    return {name.strip().lower() for name in response.headers.get(header, "").split(",") if name}


def cors_headers(response):
    return {name for name in response.headers if name.lower().startswith("access-control-")}


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_closed_by_default(user, method):
    response = send(method, "/users", headers={**user.headers, **PREFLIGHT})
    assert response.status_code == (200 if method == "GET" else 204)
    assert not cors_headers(response)


def test_other_origin_stays_closed(user, opened):
    for origin in ("https://evil.example", "https://app.example.evil.example", "http://app.example", "null", "//["):
        response = send("GET", "/users", headers={**user.headers, "Origin": origin})
        assert not cors_headers(response), origin
        assert "origin" in names(response, "Vary")


def test_preflight_needs_no_credential_and_costs_nothing(opened, settings):
    settings.RATE_LIMIT_ANONYMOUS = 1
    with connection.execute_wrapper(lambda *_: pytest.fail("a preflight asked the database")):
        responses = [send("OPTIONS", "/api/v1/payments", headers=PREFLIGHT) for _ in range(3)]
    for response in responses:
        assert (response.status_code, response.content) == (204, b"")
        assert not {"Content-Type", "Content-Length"} & set(response.headers)
        assert not is_counted(response)
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert names(response, "Access-Control-Allow-Headers") == REQUEST_HEADERS
        assert names(response, "Access-Control-Allow-Methods") == {
            method.lower() for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
        }
        assert response.headers["Request-Id"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["API-Version"] == "1"
        assert {"Deprecation", "Sunset"} <= set(response.headers)
        assert 'rel="successor-version"' in response.headers["Link"]
        assert response.headers["Allow"] == "GET, POST, HEAD, OPTIONS"
        assert {"accept", "origin"} <= names(response, "Vary")


def test_preflight_tells_its_version_as_every_answer_does(opened):
    for path, version, is_deprecated in [
        ("/api/v2/users", "2", False),
        ("/users?version=2", "2", False),
        ("/users", "1", True),
        ("/api/nowhere", "1", True),
        ("/openapi.json", None, False),
    ]:
        response = send("OPTIONS", path, headers=PREFLIGHT)
        assert (response.status_code, response.headers.get("API-Version")) == (204, version)
        assert ("Deprecation" in response.headers) is is_deprecated


def test_errors_and_oauth_can_be_read_by_the_origin(opened, db):
    for method, path, headers, status in [
        ("GET", "/users", {}, 401),
        ("GET", "/users", {"X-API-Key": "wrong"}, 401),
        ("GET", "/api/nowhere", {}, 404),
        ("GET", "/users/", {}, 308),
        ("BREW", "/users", {}, 405),
        ("GET", "/users", {"Host": "evil.example"}, 400),
        ("POST", "/oauth/token", {}, 400),
        ("GET", "/.well-known/oauth-authorization-server", {}, 200),
        ("GET", "/openapi.json", {}, 200),
    ]:
        response = send(method, path, headers={"Origin": ORIGIN, **headers})
        assert response.status_code == status
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert names(response, "Access-Control-Expose-Headers") >= EXPOSED
        assert "origin" in names(response, "Vary")


def test_refusal_of_the_quota_can_be_read_by_the_origin(opened, settings, db, one_minute):
    settings.RATE_LIMIT_ANONYMOUS = 1
    response = [send("GET", "/", headers={"Origin": ORIGIN}) for _ in range(2)][-1]
    assert response.status_code == 429
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_cookie_is_never_asked_for(opened, client, make_user):
    client.force_login(make_user(password=PASSWORD))
    response = send("GET", "/users", client=client, headers={"Origin": ORIGIN})
    assert "Access-Control-Allow-Credentials" not in response.headers
