"""Which media type answers, and the page that people get."""

import json

import pytest

from orders.models import Order
from tests.api.wire import error_of, quickly, send
from tests.conftest import Caller

JSON, HTML = "application/json", "text/html"

CHOICES = {
    "": JSON,
    "*/*": JSON,
    "application/*": JSON,
    "application/json": JSON,
    "Application/JSON": JSON,
    "application/json; charset=utf-8": JSON,
    "application/json;indent=4": JSON,
    "application/vnd.api+json": JSON,
    "application/vnd.users.v1+json": JSON,
    "application/json;version=1": JSON,
    "application/json;version=9, text/html;q=0.1": HTML,
    "application/problem+json": JSON,
    "text/html": HTML,
    "text/*": HTML,
    "TEXT/HTML;charset=utf-8": HTML,
    "text/html, application/json": HTML,
    "application/json, text/html": JSON,
    "text/html;q=0.5, application/json": JSON,
    "text/html;q=0.5, application/json;q=0.4": HTML,
    "text/html;q=0.999, application/json;q=1.000": JSON,
    "application/json;q=0.1, text/html;q=0.2": HTML,
    "application/json;q=0, text/html": HTML,
    "text/html;q=0, */*": JSON,
    "application/json;q=0, */*;q=0.1": HTML,
    "application/*;q=0, */*": HTML,
    "application/json;q=0.1, */*;q=0.9": HTML,
    "application/*;q=0.2, text/html;q=0.3": HTML,
    "application/xml, text/html;q=0.1": HTML,
    "application/xml, */*;q=0.1": JSON,
    "application/vnd.api+json, text/html;q=0.9": JSON,
    "text/html, application/vnd.api+json": HTML,
    "application/vnd.users.v1+json;q=0.9, text/html;q=0.8": JSON,
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8": HTML,
    " text/html ;q=1 , */*": HTML,
    "text/html;Q=0.1, application/json;Q=0.2": JSON,
    ",, ,application/json": JSON,
    'application/json;x="a,text/html;q=1"': JSON,
    "application/json;x=1;q=0.2, text/html;q=0.3": HTML,
    # Bytes beyond ASCII, as Latin-1: in values, in names, and as a blank that is none.
    'text/x; n="\xfc", text/html': HTML,
    "text/\xfc, text/html;\xfc=\xb2": HTML,
    "text/html\xa0, application/json": JSON,
    "text/html;q=0.\xb2, application/json": HTML,
}
NONE = ["application/xml", "text/plain", "image/*", "*/*;q=0", "application/json;q=0", "application/json;q=0.000"]
NONE += [
    "text/html;q=0",
    "application/vnd.other.v1+json",
    "application/vnd.users+json",
    "application/jsonx",
    "json",
    "*",
    "a/*",
]
NONE += ["application/vnd.users.vx+json", "application/json;q=0, text/html;q=0, */*;q=0", "text/htm"]


@pytest.mark.parametrize("path", ["/users", "/users/{id}", "/api/v1/orders", "/users/0"])
def test_accept_chooses_the_type(user: Caller, path: str) -> None:
    for accept, expected in CHOICES.items():
        response = send("GET", path.format(id=user.user.pk), headers={**user.headers, "Accept": accept})
        assert response.status_code == (404 if path == "/users/0" else 200)
        kind = response.headers["Content-Type"]
        if response.status_code == 404 and "problem" in accept:
            assert kind == "application/problem+json"
        else:
            assert kind == (JSON if expected == JSON else "text/html; charset=utf-8")
        assert "Accept" in {name.strip() for name in response.headers["Vary"].split(",")}


def test_accept_of_nothing_there_is_refused_in_json_and_has_no_effect(user: Caller) -> None:
    for accept in NONE:
        headers = {**user.headers, "Accept": accept}
        error_of(send("GET", "/users", headers=headers), 406, "NOT_ACCEPTABLE")
        body = b'{"item": "a", "qty": 1}'
        error_of(send("POST", "/orders", body, JSON, headers=headers), 406, "NOT_ACCEPTABLE")
        assert not Order.objects.exists()


def test_format_is_no_parameter(user: Caller) -> None:
    for value in ["json", "html", "api", "xml", "admin", "", "%00"]:
        for accept, kind in ((JSON, JSON), (HTML, "text/html; charset=utf-8")):
            response = send("GET", f"/api/v1/users?format={value}", headers={**user.headers, "Accept": accept})
            assert (response.status_code, response.headers["Content-Type"]) == (200, kind)


def test_accept_made_to_be_hard_to_read_is_answered_at_once(user: Caller) -> None:
    for path in ["/users", "/nowhere"]:
        for accept in [
            '"' + '\\"' * 6_000,
            '"a,' * 8_000,
            "a/b;" * 8_000,
            "," * 32_000,
            "a/b," * 8_000,
            ";q=0" * 8_000,
            "\\" * 32_000,
            '"' * 32_001,
        ]:
            with quickly():
                response = send("GET", path, headers={**user.headers, "Accept": accept})
            assert response.status_code == (406 if path == "/users" else 404)
            assert json.loads(response.content)["success"] is False


def test_page_shows_no_key(user: Caller) -> None:
    key = user.headers["X-API-Key"]
    page = send("GET", f"/users?api_key={key}", headers={"Accept": HTML}).content.decode()
    assert "&quot;success&quot;" in page
    assert key not in page
