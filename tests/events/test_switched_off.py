"""Without EVENTS nothing tells of events or webhooks. The setting is read when the service starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection

from config.site.documentation import PAGES
from tests.accounts.oauth.actors import Person, register
from tests.conftest import PASSWORD, own_session, with_key
from tests.service import CHECKOUT

# Fetches what a JSON object on standard input names, as a user with a key who is signed in.
FETCH = """
import json, sys, django
django.setup()
from django.test import Client
from users.models import User

given = json.load(sys.stdin)
programs, browser = (Client(raise_request_exception=False) for _ in range(2))
browser.force_login(User.objects.get(pk=given["user_id"]))
headers = {"X-API-Key": given["key"]}
answers = {path: programs.get(path, headers=headers) for path in given["api"]}
answers |= {path: browser.get(path) for path in given["pages"]}
print(json.dumps({path: [answer.status_code, answer.content.decode()] for path, answer in answers.items()}))
"""
GUIDE = [f"/docs/{page}" for page in PAGES]
GONE = ["/events", "/api/v1/events", "/api/v2/webhooks", "/webhooks/1/deliveries", "/docs/events", "/docs/webhooks"]
PAGES_FOR_PEOPLE = [
    "/docs",
    "/oauth/grants",
    "/session/account",
    "/admin/",
    "/admin/config/webhook/",
    "/admin/config/webhookdelivery/",
]
GIVEN = "users:read events:read"
METADATA = "/.well-known/oauth-authorization-server"
DOCUMENTS = ["/api/v2", "/openapi.json?version=2", METADATA]


@pytest.fixture
def fetched(make_user: Any, transactional_db: None) -> dict[str, Any]:
    """Status and text of each path. The user has a grant with a scope of events, from before."""
    chief = make_user("admin", password=PASSWORD)
    key = with_key(chief, ["users:read"])
    Person(chief).tokens(register(allowed_scopes=GIVEN.split()), scope=GIVEN)
    given = {
        "user_id": chief.pk,
        "key": (key.headers or {})["X-API-Key"],
        "api": [*GONE, *DOCUMENTS],
        "pages": [*GUIDE, *PAGES_FOR_PEOPLE, f"/admin/users/user/{chief.pk}/change/"],
    }
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    run = subprocess.run(
        [sys.executable, "-c", FETCH],
        cwd=CHECKOUT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": url, "EVENTS": "false"},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@own_session
def test_nothing_tells_of_events_or_webhooks_or_leads_to_their_pages(fetched):
    missing = {*GONE, *(path for path in PAGES_FOR_PEOPLE if "webhook" in path)}
    assert {path for path, (status, _) in fetched.items() if status != 200} == missing
    assert {fetched[path][0] for path in missing} == {404}
    for path in {*fetched} - missing - {*GUIDE}:
        # What a token was given is shown as it was. The trail may have kept events such as `webhook.created`.
        text = fetched[path][1].replace(GIVEN, "")
        assert re.findall(r".{50}(?:[Ww]ebhook(?!\.)|events:read|/events)", text) == [], path
    others = [f"{name}:{verb}" for name in ("users", "orders", "posts", "payments") for verb in ("read", "write")]
    assert json.loads(fetched[METADATA][1])["scopes_supported"] == [*others, "audit:read"]
    present = {*GUIDE} - {*GONE}
    linked = {page for path in present for page in re.findall(r'href="(/docs/[a-z-]+)[#"]', fetched[path][1])}
    assert linked <= present
    # The text stays.
    assert "the event feed, and" in " ".join(fetched["/docs/credentials"][1].split())
