"""The session cookie as a credential: only without an explicit one, and never without CSRF protection."""

import json

import pytest
from django.test import Client

from accounts.services import create_api_key
from tests.conftest import PASSWORD, with_password

TOKEN = "t" * 32


@pytest.fixture
def browser(owner):
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(owner)
    client.cookies["csrftoken"] = TOKEN
    return client


def send(browser, method, path, body=None, **headers):
    data = b"" if body is None else json.dumps(body)
    return browser.generic(method, path, data, "application/json", headers=headers)


@pytest.mark.parametrize(
    "neighbour", ["city=Z\xfcrich", "city=Z\xc3\xbcrich", "\xfc=1", "\xfc", 'c="\xfc', "a=\xa0\x85"]
)
@pytest.mark.parametrize("order", ["{0}; {1}", "{1}; {0}"])
def test_cookie_of_a_neighbour_may_hold_any_bytes(browser, owner, neighbour, order):
    """RFC 9110, section 5.5: a server takes them for Latin-1, and reads the part that it understands."""
    own = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())
    cookies, path = order.format(neighbour, own), f"/users/{owner.pk}"
    stranger = Client(enforce_csrf_checks=True)
    assert stranger.get("/api/protected", headers={"Cookie": cookies}).status_code == 200
    named = send(stranger, "PATCH", path, {"name": "New"}, **{"Cookie": cookies, "X-CSRFToken": TOKEN})
    assert named.json()["data"]["name"] == "New"
    form = {"username": owner.email, "password": PASSWORD, "csrfmiddlewaretoken": TOKEN}
    assert stranger.post("/session/login", form, headers={"Cookie": cookies}).status_code == 302


@pytest.mark.parametrize("blank", ["\xa0", "\x85"])
def test_credential_is_spelt_without_blanks_beyond_ascii(owner, other, blank):
    key, pair = other.headers["X-API-Key"], with_password(owner).headers["Authorization"]
    for headers in (
        {"X-API-Key": f"{key}{blank}"},
        {"X-API-Key": f"{blank}{key}"},
        {"Authorization": f"{pair}{blank}"},
    ):
        assert Client().get("/users", headers=headers).status_code == 401


@pytest.mark.parametrize("kind", ["header", "query", "basic"])
def test_explicit_credential_comes_before_the_session(browser, make_user, kind):
    row = make_user(password=PASSWORD)
    key = create_api_key(row, name="test")[1]
    headers = {"header": {"X-API-Key": key}, "query": {}, "basic": with_password(row).headers}[kind]
    answer = browser.get(f"/api/protected?api_key={key}" if kind == "query" else "/api/protected", headers=headers)
    assert answer.json()["data"]["user"]["id"] == row.pk
    assert answer.json()["data"]["credential"]["kind"] == ("basic" if kind == "basic" else "api_key")


def test_bad_explicit_credential_never_falls_back_to_the_session(browser):
    for path, headers, code in [
        ("/users", {"X-API-Key": "urs_none"}, "INVALID_CREDENTIALS"),
        ("/users", {"X-API-Key": ""}, "INVALID_CREDENTIALS"),
        ("/users?api_key=urs_none", {}, "INVALID_CREDENTIALS"),
        ("/users?api_key=", {}, "INVALID_CREDENTIALS"),
        ("/users", {"Authorization": "Basic bm9ib2R5Ong="}, "INVALID_CREDENTIALS"),
        ("/users", {"Authorization": "Bearer none"}, "INVALID_TOKEN"),
    ]:
        assert browser.get("/users").status_code == 200
        answer = browser.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
        assert answer["WWW-Authenticate"]
