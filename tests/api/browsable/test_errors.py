"""Errors are pages with the facts of the JSON."""

import json

import pytest

from tests.api.browsable.conftest import HTML, shown_json
from tests.api.test_failures import database_away
from tests.api.wire import send


def test_error_is_a_page_with_the_same_facts(ada):
    for method, path, status, code in [
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/api/v9/users", 404, "UNSUPPORTED_VERSION"),
        ("GET", "/users/0", 404, "NOT_FOUND"),
        ("PUT", "/orders", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/users?limit=0&sort=x", 400, "VALIDATION_ERROR"),
        ("GET", "/users?cursor=x", 400, "INVALID_CURSOR"),
        ("POST", "/session/logout", 403, "FORBIDDEN"),
    ]:
        response = ada(path, method)
        assert (response.status_code, response.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        error = json.loads(shown_json(response))["error"]
        assert error["code"] == code
        for detail in error["details"]:
            assert f'data-field="{detail["field"]}"' in response.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/users", "/health/ready"])
def test_database_that_is_away_is_a_page(ada, path):
    with database_away():
        response = ada(path)
    assert (response.status_code, response.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert json.loads(shown_json(response))["error"]["code"] == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/introspect"])
def test_endpoint_of_oauth_answers_programs_alone(db, path):
    response = send("POST", path, headers={"Accept": HTML})
    assert response.status_code >= 400
    assert response.headers["Content-Type"].startswith("application/json")
