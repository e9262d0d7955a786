"""The Content-Security-Policy of answers, and what their pages hold."""

from html.parser import HTMLParser

import pytest
from django.test import Client

from tests.api.wire import send
from tests.conftest import PASSWORD

PAGES = [
    *("/admin/", "/admin/login/", "/admin/users/user/", "/admin/users/user/add/"),
    *("/admin/accounts/application/add/", "/admin/config/auditevent/", "/docs", "/docs/versions", "/", "/users"),
    *("/users/0", "/api/v1/posts", "/session/login", "/oauth/grants", "/oauth/authorize"),
]


def directives(response):
    parts = (part.split() for part in response.headers["Content-Security-Policy"].split(";"))
    return {name: set(values) for name, *values in parts}


class Inline(HTMLParser):
    """The scripts and styles that stand in a page itself."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "style" or (tag == "script" and "src" not in given and given.get("type") != "application/json"):
            self.found.append(tag)
        self.found += [name for name in given if name == "style" or name.startswith("on")]


@pytest.mark.parametrize("path", PAGES)
def test_page_runs_scripts_of_our_own_files_only_and_in_no_frame(make_user, path):
    client = Client()
    if not path.endswith("login/"):
        client.force_login(make_user("admin", password=PASSWORD))
    response = send("GET", path, client=client, headers={"Accept": "text/html"})
    assert response.headers["Content-Type"].startswith("text/html"), response
    policy = directives(response)
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == {"'none'"}
    assert policy.get("script-src", policy["default-src"]) <= {"'self'", "'none'"}
    assert policy["style-src"] == {"'self'"}
    assert policy["form-action"] == {"'self'"}
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert Inline(response.content.decode()).found == []


@pytest.mark.parametrize("path", ["/users", "/api/nowhere", "/health/live", "/oauth/token", "/openapi.json"])
def test_data_shows_nothing(db, path):
    assert directives(send("GET", path)) == {"default-src": {"'none'"}, "frame-ancestors": {"'none'"}}


def test_icon_that_browsers_ask_for_is_there():
    response = send("HEAD", "/favicon.ico")
    assert response.status_code == 200
    assert response.headers["Content-Type"] in {"image/x-icon", "image/vnd.microsoft.icon"}


@pytest.mark.parametrize("secure", [True, False])
def test_only_under_tls_the_browser_is_told_to_stay_there(db, settings, secure):
    response = send("GET", "/", secure=secure)
    assert response.headers.get("Strict-Transport-Security") == ("max-age=31536000" if secure else None)
