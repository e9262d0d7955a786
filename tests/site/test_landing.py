"""The landing page at the root: for people alone, and where signing in leads."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from accounts.services import create_api_key
from tests.conftest import new_client

HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture
def browser(db: None) -> Client:
    return new_client(checks_csrf=False)


def read(browser: Client, path: str = "/") -> str:
    page = browser.get(path, headers={"Accept": HTML})
    assert page.status_code == 200
    assert page["Content-Type"].startswith("text/html")
    return page.content.decode()


def test_landing_page_tells_the_address_the_doors_and_the_versions(browser, settings):
    text = read(browser)
    assert f"{settings.PUBLIC_URL}/api/v2" in text
    for address in ("/docs/first-request", "/docs", "/api/v2", "/docs/versions", "/session/login?next=/"):
        assert f'href="{address}"' in text
    assert "deprecated" in text
    assert "Operational" in text
    # No date of release or deprecation: that may lie ahead.
    assert re.findall('<th scope="col">([A-Z].*?)</th>', text) == ["Version", "Status", "Sunset"]


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
def test_programs_get_the_entry_document(browser, accept):
    answer = browser.get("/", headers={"Accept": accept})
    assert answer["Content-Type"] == "application/json"
    assert answer.json()["data"]["_links"]["documentation"] == {"href": "/docs"}


def test_first_request_is_with_the_key_of_the_reader(browser, make_user):
    user = make_user(name="Ann <b>")
    browser.force_login(user)
    assert "You have no API key yet" in read(browser)
    key, whole = create_api_key(user, name="First")
    text = read(browser)
    assert f"KEY={key.prefix}…" in text
    assert f"/api/v2/users/{user.pk}" in text
    assert whole not in text
    assert "Ann &lt;b&gt;" in text
    # For the staff alone.
    assert 'href="/admin/"' not in text


def test_landing_page_without_a_database_says_so(browser, monkeypatch):
    def fail(*_: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr("config.site.landing.connection.cursor", fail)
        assert "its database is not" in read(browser)


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ("", "/"),
        ("?next=/api/v2/users", "/api/v2/users"),
        ("?next=/session/login", "/"),
        ("?next=/session/login%3Fnext=/session/login", "/"),
        ("?next=//evil.example/", "/"),
    ],
)
def test_who_is_signed_in_is_not_asked_to_sign_in(browser, make_user, asked, target):
    browser.force_login(make_user())
    answer = browser.get(f"/session/login{asked}")
    assert (answer.status_code, answer["Location"]) == (302, target)
