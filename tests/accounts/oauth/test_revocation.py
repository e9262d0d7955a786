"""Revocation (RFC 7009) and introspection (RFC 7662): each client for its own tokens."""

import time
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from tests.accounts.oauth.actors import bearer, register, send


@pytest.fixture(params=["client", "public"])
def application(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense"])
def test_revoking_either_token_ends_both_and_those_that_follow(person, application, kind, hint):
    tokens = person.tokens(application)
    answer = application.post("/oauth/revoke", token=tokens[kind], token_type_hint=hint)
    assert (answer.status, answer.response.content) == (200, b"")
    assert bearer(tokens["access_token"]).get("/api/protected").status == 401
    assert application.refresh(tokens["refresh_token"]).body["error"] == "invalid_grant"


def test_revoking_a_refresh_token_that_was_rotated_ends_its_successor(person, client):
    tokens = person.tokens(client)
    second = client.refresh(tokens["refresh_token"]).body
    assert client.post("/oauth/revoke", token=tokens["refresh_token"]).status == 200
    assert bearer(second["access_token"]).get("/api/protected").status == 401


def test_token_of_another_client_is_not_revoked(person, client, public):
    tokens = person.tokens(client)
    for token in (tokens["access_token"], tokens["refresh_token"], "none", "x" * 100_000):
        assert public.post("/oauth/revoke", token=token).status == 200
    assert bearer(tokens["access_token"]).get("/api/protected").status == 200


def test_revocation_without_a_token_is_invalid(client):
    assert client.post("/oauth/revoke").body["error"] == "invalid_request"
    assert client.post("/oauth/introspect").body["error"] == "invalid_request"


def test_introspection_tells_the_state_of_an_access_token(person, client):
    token = person.tokens(client)["access_token"]
    told = client.introspect(token)
    assert told.pop("exp") - told.pop("iat") in {899, 900}
    assert told == {
        "active": True,
        "iss": "https://api.example.com",
        "client_id": client.client_id,
        "sub": str(person.user.pk),
        "scope": "orders:read users:read",
        "token_type": "Bearer",
    }


def test_introspection_tells_the_state_of_a_refresh_token(person, client):
    token = person.tokens(client)["refresh_token"]
    told = client.introspect(token)
    assert (told["active"], told["client_id"], told["sub"]) == (True, client.client_id, str(person.user.pk))
    assert told["exp"] - time.time() == pytest.approx(14 * 86400, abs=30)
    client.refresh(token)
    assert client.introspect(token) == {"active": False}


@pytest.mark.parametrize(("age", "active"), [(timedelta(days=14, minutes=-1), True), (timedelta(days=14), False)])
def test_refresh_token_is_active_as_long_as_it_can_be_used(person, client, age, active):
    token = person.tokens(client)["refresh_token"]
    with time_machine.travel(datetime.now(UTC) + age, tick=False):
        assert client.introspect(token)["active"] is active
        assert ("Reader" in person.browser.get("/oauth/grants").content.decode()) is active
        assert client.refresh(token).status == (200 if active else 400)


def test_introspection_tells_a_machines_owner(machine):
    assert machine.introspect(machine.act().body["access_token"])["sub"] == str(machine.row.owner_id)


def test_introspection_knows_the_asking_clients_tokens_only(person, client, public):
    other = register(name="Other")
    for tokens in (person.tokens(client), person.tokens(public)):
        for token in (tokens["access_token"], tokens["refresh_token"], "none"):
            assert other.introspect(token) == {"active": False}


def test_introspection_is_for_clients_that_prove_themselves(person, public, client):
    token = person.tokens(public)["access_token"]
    assert public.post("/oauth/introspect", token=token).status == 401
    answer = send("/oauth/introspect", {"token": token}, Authorization=f"Bearer {token}")
    assert answer.status == 401


@pytest.mark.parametrize("body", [{"status": "inactive"}, None])
def test_token_of_somebody_deactivated_or_removed_is_not_active(person, client, admin, body):
    tokens = person.tokens(client)
    admin("PATCH" if body else "DELETE", f"/users/{person.user.pk}", body)
    assert client.introspect(tokens["access_token"]) == {"active": False}
    assert client.introspect(tokens["refresh_token"]) == {"active": False}
