"""An administrator ends every key, token and session of a user in one action of the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts import logins, services
from accounts.services import create_api_key
from config.models import AuditEvent, Webhook
from tests.accounts.conftest import log_in, refresh, run_action
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import PASSWORD, Caller, signed_in, with_key, with_password
from users.models import User

USERS = "/admin/users/user/"
WEBHOOK = {"url": "https://example.com/hook", "types": ["order.created"]}


def end_credentials(pages: Client, user: User, **options: bool) -> Any:
    return run_action(pages, USERS, "end_credentials", user, **options)


@pytest.fixture
def victim(make_user):
    return make_user(name="Vera Victim", password=PASSWORD)


@pytest.fixture
def credentials(victim):
    """Every credential that ends, by its kind: a way to ask who one is with it."""
    client, machine = register(), register(victim, grant="client-credentials", redirect_uris="")
    pair, session = log_in(victim.email, PASSWORD).data, signed_in(victim)
    return {
        "api_key": Caller(headers={"X-API-Key": create_api_key(victim, name="k")[1]}),
        "jwt": bearer(pair["access_token"]),
        "oauth": bearer(Person(victim).tokens(client)["access_token"]),
        "client credentials": bearer(machine.act().body["access_token"]),
        "session": session,
    }


def status_of(credential: Any) -> int:
    answer = credential.get("/api/protected")
    return answer.status_code if isinstance(credential, Client) else answer.status


def test_every_credential_is_refused_afterwards_but_the_password(pages, victim, credentials):
    assert {kind: status_of(credential) for kind, credential in credentials.items()} == dict.fromkeys(credentials, 200)
    assert end_credentials(pages, victim).status_code == 302
    assert {kind: status_of(credential) for kind, credential in credentials.items()} == dict.fromkeys(credentials, 401)
    assert with_password(victim).get("/api/protected").status == 200
    assert bearer(log_in(victim.email, PASSWORD).data["access_token"]).get("/api/protected").status == 200


def test_nothing_gets_a_new_token_afterwards(pages, victim):
    client, machine = register(), register(victim, grant="client-credentials", redirect_uris="")
    person = Person(victim)
    tokens, code, pair = person.tokens(client), person.code(client), log_in(victim.email, PASSWORD).data
    end_credentials(pages, victim)
    assert refresh(pair["refresh_token"]).status == 401
    assert client.refresh(tokens["refresh_token"]).body["error"] == "invalid_grant"
    assert client.exchange(code).body["error"] == "invalid_grant"
    assert machine.act().body["error"] == "invalid_client"
    assert person.look(client).status_code == 302  # to the sign-in


def test_others_and_the_users_own_code_applications_go_on(pages, victim, make_user):
    client, other = register(victim), make_user(password=PASSWORD)
    token = Person(other).tokens(client)["access_token"]
    key = Caller(headers={"X-API-Key": create_api_key(other, name="k")[1]})
    session, person = signed_in(other), Person(other)
    end_credentials(pages, victim)
    assert [status_of(credential) for credential in (bearer(token), key, session)] == [200, 200, 200]
    assert person.tokens(client)["access_token"]


def test_webhooks_are_disabled_and_say_why(pages, victim, make_user):
    own, others = (with_key(each).post("/webhooks", WEBHOOK) for each in (victim, make_user()))
    end_credentials(pages, victim)
    owner, path = with_password(victim), own.headers["Location"]
    webhook = owner.get(path).data
    assert (webhook["status"], "credentials were revoked" in webhook["disabled_reason"]) == ("disabled", True)
    assert Webhook.objects.get(pk=others.data["id"]).status == "active"
    assert AuditEvent.objects.get(event="credentials.ended").facts["webhooks"] == 1
    assert owner.patch(path, {"status": "active"}).data["disabled_reason"] == ""


def test_action_is_confirmed_first(pages, victim, credentials):
    page = end_credentials(pages, victim, confirmed=False)
    assert page.status_code == 200
    shown = page.content.decode()
    assert "Vera Victim" in shown
    assert "Passwords stay valid" in shown
    assert status_of(credentials["api_key"]) == 200


def test_administrator_who_chooses_itself_is_told_and_signed_out(chief, pages):
    assert "your own session ends, too" in end_credentials(pages, chief, confirmed=False).content.decode()
    end_credentials(pages, chief)
    assert pages.get(USERS).status_code == 302


@pytest.mark.parametrize("role", ["user", "support"])
def test_nobody_but_administrators_ends_anything(make_user, victim, credentials, role):
    pages = signed_in(make_user(role))
    end_credentials(pages, victim)
    assert b"end_credentials" not in pages.get(USERS).content
    assert status_of(credentials["api_key"]) == 200
    assert not AuditEvent.objects.filter(event="credentials.ended").exists()


def test_end_is_noted_with_its_numbers_and_by_whom(pages, victim, credentials):
    end_credentials(pages, victim)
    event = AuditEvent.objects.get(event="credentials.ended")
    assert (event.user, event.facts) == (victim, {"api_keys": 1, "logins": 1, "oauth_tokens": 3, "webhooks": 0})
    entry = LogEntry.objects.get()
    assert (entry.user.name, entry.object_id) == ("Chief", str(victim.pk))


def test_login_under_way_is_over_too(victim):
    """Read before the end, saved after it."""
    stale = User.objects.get(pk=victim.pk)
    services.end_credentials(victim)
    assert bearer(str(logins.log_in(stale).access)).get("/api/protected").status == 401


def test_nothing_lives_on_of_what_races_the_end(at_once, make_user, settings):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = settings.RATE_LIMIT_LOGIN_ADDRESS = 0
    for _ in range(4):
        victim, pages = make_user(password=PASSWORD), signed_in(make_user("admin"))
        client, machine = register(), register(victim, grant="client-credentials", redirect_uris="")
        person = Person(victim)
        tokens, code, pair = person.tokens(client), person.code(client), log_in(victim.email, PASSWORD).data
        jwt = bearer(pair["access_token"])
        path = jwt.post("/webhooks", WEBHOOK).headers["Location"]
        ended, *raced = at_once(
            [
                lambda: end_credentials(pages, victim),  # noqa: B023
                lambda: client.refresh(tokens["refresh_token"]),  # noqa: B023
                lambda: client.exchange(code),  # noqa: B023
                lambda: machine.act(),  # noqa: B023, PLW0108
                lambda: refresh(pair["refresh_token"]),  # noqa: B023
                lambda: jwt.post("/api-keys", {"name": "k"}),  # noqa: B023
                lambda: jwt.post("/webhooks", WEBHOOK),  # noqa: B023
                lambda: jwt.patch(path, {"status": "active", "description": "late"}),  # noqa: B023
            ]
        )
        assert ended.status_code == 302
        assert max(answer.status for answer in raced) < 500, raced
        assert not Webhook.objects.filter(user=victim, status="active").exists()
        for answer in raced:
            found = answer.body.get("data") or answer.body
            if "key" in found:
                assert status_of(Caller(headers={"X-API-Key": found["key"]})) == 401
            if "access_token" in found:
                assert status_of(bearer(found["access_token"])) == 401
