"""Requests that are not run, because too much waits: the response that many of them share."""

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse

from config.api.exceptions import plain_response
from config.api.handlers import build_api_stack
from config.api.versions import usage
from config.http.request_state import get_state
from config.server import answers, application
from config.server.answers import refuse_at_once
from config.server.requests import build_overload
from tests.conftest import fast_path_only
from tests.server.environ import build_environ
from tests.server.received import Received, respond_to

REQUESTS = {
    "plain": ("/api/v1/users", {}),
    "of another resource": ("/api/v1/users/1/orders", {}),
    "of a current version": ("/api/v2/users", {}),
    "version by query": ("/users?version=2&sort=id", {}),
    "version by query, encoded": ("/users?%76ersion=2", {}),
    "version in Accept": ("/users", {"HTTP_ACCEPT": "application/json;version=2"}),
    "version that does not exist": ("/api/v9/users", {}),
    "problem details": ("/api/v2/users", {"HTTP_ACCEPT": "application/problem+json"}),
    "of another origin": ("/api/v2/users", {"HTTP_ORIGIN": "https://shop.example"}),
    "preflight": (
        "/api/v2/users",
        {
            "REQUEST_METHOD": "OPTIONS",
            "HTTP_ORIGIN": "https://shop.example",
            "HTTP_ACCESS_CONTROL_REQUEST_METHOD": "GET",
        },
    ),
    "not encrypted": ("/api/v2/users", {"wsgi.url_scheme": "http"}),
    "of a host that is not ours": ("/api/v2/users", {"HTTP_HOST": "elsewhere.example"}),
    "OAuth": ("/oauth/token", {"REQUEST_METHOD": "POST"}),
    "Request-Id": ("/api/v2/users", {"HTTP_X_REQUEST_ID": "mine"}),
    "a secret in the query": ("/api/v2/users?api_key=u_secret.secret&version=2", {}),
}


@pytest.fixture(autouse=True)
def nothing_refused_before():
    answers._refusals.clear()
    yield
    answers._refusals.clear()


def build(name):
    address, headers = REQUESTS[name]
    path, _, query = address.partition("?")
    return build_environ("/", "no-token") | {"PATH_INFO": path, "QUERY_STRING": query} | headers


def refuse_alone(environ, problem):
    """The response of the stack to the request itself."""
    request = WSGIRequest(environ)
    state = get_state(request.META)
    state.quota_fields = {}
    return build_api_stack(lambda request: plain_response(problem, request))(request)


def compare(given):
    """What must be equal. The link to the successor of a version may lead to its root, and each has its own id."""
    status, headers, body = given
    return status, {name: value for name, value in headers if name not in {"Request-Id", "Link"}}, body


@pytest.mark.parametrize("name", REQUESTS)
def test_each_refusal_is_that_of_the_stack(name):
    problem = build_overload("Too many.")
    for other in REQUESTS:
        refuse_at_once(build(other), problem)
    given = refuse_at_once(build(name), problem)
    expected = refuse_alone(build(name), problem)
    assert compare(given) == compare((expected.status_code, expected.items(), expected.content))
    assert ("successor-version" in dict(given.headers).get("Link", "")) == (
        "successor-version" in expected.get("Link", "")
    )


def test_fault_is_no_refusal_for_others(monkeypatch):
    monkeypatch.setattr(answers, "_get_short_stack", lambda: lambda request: HttpResponse(status=500))
    assert refuse_at_once(build("plain"), build_overload("Too many.")).status == 500
    monkeypatch.undo()
    assert refuse_at_once(build("plain"), build_overload("Too many.")).status == 503


def test_each_refusal_has_a_request_id_of_its_own():
    ids = [dict(refuse_at_once(build("plain"), build_overload("Too many.")).headers)["Request-Id"] for _ in range(3)]
    assert len({*ids}) == 3
    given = refuse_at_once(build("Request-Id"), build_overload("Too many."))
    assert dict(given.headers)["Request-Id"] == "mine"


def test_each_refusal_is_counted(monkeypatch):
    counted = []
    monkeypatch.setattr(usage.VersionUses, "count", lambda self, version, principal, status: counted.append(status))
    for _ in range(3):
        refuse_at_once(build("plain"), build_overload("Too many."))
    assert counted == [503, 503, 503]


def test_no_secret_is_kept():
    refuse_at_once(build("a secret in the query"), build_overload("Too many."))
    assert "secret" not in repr(answers._refusals)


def test_refusals_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(answers, "MAX_REFUSALS", 8)
    for number in range(50):
        refuse_at_once(build("plain") | {"HTTP_ORIGIN": f"https://{number}.example"}, build_overload("Too many."))
    assert len(answers._refusals) <= 8


@fast_path_only
def test_caller_with_nothing_under_way_is_refused_last(transactional_db, settings, monkeypatch):
    settings.TRUSTED_PROXIES = 1
    monkeypatch.setattr(application, "MAX_RUNNING", 2)
    callers = ["203.0.113.1"] * 5 + [f"203.0.113.{number}" for number in range(2, 6)]
    answered = respond_to(*(Received("/api/v2/users", x_forwarded_for=caller) for caller in callers))
    assert [each.status for each in answered] == [401, 401, 503, 503, 503, 401, 401, 503, 503]
