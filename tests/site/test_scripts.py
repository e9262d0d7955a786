"""How many bytes of scripts a page loads, as a browser gets them."""

from __future__ import annotations

import re

from django.contrib import admin
from django.test import Client

from tests.conftest import PASSWORD, new_client

MAX_BYTES = 60_000
# All but the reference, whose viewer is one script of half a megabyte.
PAGES = ("/", "/docs/first-request", "/session/login", "/api/v2/users", "/api/v2/users/{}", "/oauth/grants", "/admin/")
_SOURCE = re.compile(r'<script[^>]* src="([^"]+)"')


def get_admin_pages(user_id):
    for model, model_admin in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield base
        if model_admin.has_add_permission.__func__ is admin.ModelAdmin.has_add_permission:
            yield f"{base}add/"
    yield f"/admin/users/user/{user_id}/change/"
    yield f"/admin/users/user/{user_id}/delete/"


def measure(browser: Client, source: str) -> int:
    response = browser.get(source, headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200, source
    # Not closed: that would tell Django that the request is over, and close the connection of the test.
    return len(response.getvalue())


def test_each_page_loads_few_bytes_of_scripts(make_user):
    user = make_user("admin", password=PASSWORD)
    browser = new_client(checks_csrf=False)
    browser.force_login(user)
    sizes: dict[str, int] = {}
    measured = 0
    for page in (*(page.format(user.pk) for page in PAGES), *get_admin_pages(user.pk)):
        response = browser.get(page, headers={"Accept": "text/html"})
        if response.status_code == 403:
            continue
        # Who is signed in is led on from the page to sign in.
        assert response.status_code in {200, 302}, page
        sources = set(_SOURCE.findall(response.content.decode()))
        for source in sources - sizes.keys():
            sizes[source] = measure(browser, source)
        assert sum(sizes[source] for source in sources) <= MAX_BYTES, page
        measured += bool(sources)
    assert measured > len(admin.site._registry)
