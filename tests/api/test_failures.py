"""What is our fault: the database away, and an exception nobody expected."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import Client

from config.api.listing.keyset import KeysetQuery
from tests.api.wire import error_of, send
from tests.conftest import Caller

SECRET = "the combination of the vault is 4711"


@contextmanager
def database_away() -> Iterator[None]:
    """Nobody listens where the settings say the database is."""
    settings = connection.settings_dict
    before = settings["HOST"], settings["PORT"]
    connection.close()
    settings["HOST"], settings["PORT"] = "127.0.0.1", "1"
    try:
        yield
    finally:
        settings["HOST"], settings["PORT"] = before
        connection.close()


REQUESTS = [
    ("GET", "/users", b""),
    ("HEAD", "/users", b""),
    ("GET", "/api/v1/orders/1", b""),
    ("POST", "/orders", b'{"item": "a", "qty": 1}'),
    ("DELETE", "/users/1", b""),
    ("GET", "/api/protected", b""),
    ("GET", "/health/ready", b""),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_database_that_is_away_is_told_with_when_to_come_back(
    user: Caller, *, method: str, path: str, body: bytes
) -> None:
    for accept in ["application/json", "application/problem+json", "text/html"]:
        headers = {**user.headers, "Accept": accept}
        with database_away():
            response = send(method, path, body, "application/json" if body else "", headers=headers)
        assert response.status_code == 503
        assert int(response.headers["Retry-After"]) >= 1
        assert response.headers["Request-Id"]
        assert b"127.0.0.1" not in response.content
        if method == "HEAD":
            assert response.content == b""
        elif accept == "application/json":
            error_of(response, 503, "SERVICE_UNAVAILABLE")
        else:
            assert b"SERVICE_UNAVAILABLE" in response.content
        assert user.get("/users").status == 200


@pytest.mark.django_db(transaction=True)
def test_session_while_the_database_is_away(make_user) -> None:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.force_login(make_user("admin"))
    for accept in ("application/json", "text/html"):
        with database_away():
            response = send("GET", "/users", client=client, headers={"Accept": accept})
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        assert b"SERVICE_UNAVAILABLE" in response.content


@pytest.mark.django_db(transaction=True)
def test_what_needs_no_database_answers_while_it_is_away(user: Caller) -> None:
    with database_away():
        statuses = {
            path: send("GET", path).status_code
            for path in ("/", "/health/live", "/openapi.json", "/nowhere", "/users/")
        }
    assert statuses == {"/": 200, "/health/live": 200, "/openapi.json": 200, "/nowhere": 404, "/users/": 308}


@pytest.mark.django_db(transaction=True)
def test_connection_that_dies_costs_one_request_at_most(user: Caller) -> None:
    connection.connection.close()
    assert user.get("/users").status in {200, 503}
    connection.close_if_unusable_or_obsolete()
    assert user.get("/users").status == 200


@pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyError(SECRET), AssertionError(SECRET)])
def test_unexpected_exception_is_an_internal_error_that_tells_nothing(
    user: Caller, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    assert user.get("/api/v1/orders").status == 200
    monkeypatch.setattr(KeysetQuery, "slice", fail)
    for accept in ("application/json", "application/problem+json", "text/html"):
        response = send("GET", "/api/v1/orders", headers={**user.headers, "Accept": accept, "X-Request-Id": "known"})
        assert (response.status_code, response.headers["Request-Id"]) == (500, "known")
        text = response.content.decode()
        assert "INTERNAL_ERROR" in text
        hidden = (SECRET, "4711", "Traceback (most recent call last)", type(error).__name__, ".py", "site-packages")
        assert not any(word in text for word in hidden)
        if accept == "application/json":
            assert error_of(response, 500, "INTERNAL_ERROR")["details"] == []


def test_unexpected_exception_outside_the_resources_has_the_same_body(
    nobody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError(SECRET)

    with monkeypatch.context() as patched:
        patched.setattr(connection, "cursor", fail)
        answers = [
            send("GET", "/health/ready", headers={"Accept": accept}) for accept in ("*/*", "application/problem+json")
        ]
    assert error_of(answers[0], 500, "INTERNAL_ERROR")["details"] == []
    problem = json.loads(answers[1].content)
    assert (answers[1].status_code, problem["status"], problem["code"]) == (500, 500, "INTERNAL_ERROR")
    assert not any(SECRET in answer.content.decode() for answer in answers)


# Where a fault may be: what fails, and a request that comes by.
FAULTS = {
    "a resource": ("users.permissions.UserPermission.has_permission", "GET", "/users"),
    "rendering": ("config.api.representation.renderers.JSONRenderer.render", "GET", "/users"),
    "a middleware": ("config.http.middleware.HostMiddleware.__call__", "GET", "/users"),
    "the outermost middleware": ("config.server.metrics.MetricsMiddleware.__call__", "GET", "/users"),
    "a page": ("accounts.oauth.consent.GrantsView.get", "GET", "/oauth/grants"),
    "OAuth": ("accounts.oauth.endpoints.MetadataView.get", "GET", "/.well-known/oauth-authorization-server"),
    "the admin": ("users.admin.UserAdmin.get_queryset", "GET", "/admin/users/user/"),
}


@pytest.mark.parametrize(("place", "method", "path"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_line_of_the_log(make_user, monkeypatch, told, *, place: str, method: str, path: str) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError(SECRET)

    client = Client(raise_request_exception=False)
    client.force_login(make_user("admin"))
    with monkeypatch.context() as patched:
        patched.setattr(place, fail)
        response = send(method, path, client=client)
    assert response.status_code == 500
    (line,) = (line for line in told() if line["level"] == "ERROR")
    assert (line["logger"], line["message"]) == ("config.api.exceptions", f"INTERNAL_ERROR in {method} {path}")
    assert SECRET in line["exception"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "path"), [("GET", "/users"), ("POST", "/oauth/revoke"), ("GET", "/oauth/grants")])
def test_database_that_is_away_is_one_line_of_the_log(make_user, told, method: str, path: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(make_user("admin"))
    form = (b"token=x&client_id=y", "application/x-www-form-urlencoded") if method == "POST" else ()
    with database_away():
        response = send(method, path, *form, client=client)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    (line,) = (line for line in told() if line["level"] == "ERROR")
    assert (line["logger"], "exception" in line) == ("config.api.exceptions", False)


def test_foreign_host_is_a_line_without_a_trace(db: None, told) -> None:
    error_of(
        send("GET", "/api/v2/users", headers={"Host": "evil.example", "X-Request-Id": "known"}), 400, "VALIDATION_ERROR"
    )
    (line,) = told()
    assert (line["logger"], line["request_id"]) == ("django.security.DisallowedHost", "known")
    assert "evil.example" in line["message"]
    assert "exception" not in line
