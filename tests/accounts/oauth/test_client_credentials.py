"""The client credentials grant: an application acts for its owner."""

import pytest

from accounts.models import Application
from tests.accounts.oauth.actors import bearer, register


def test_token_acts_for_the_owner_within_the_scopes_asked_for(machine):
    answer = machine.act("users:read orders:write")
    assert answer.status == 200
    assert answer.body.keys() == {"access_token", "token_type", "expires_in", "scope"}
    caller = bearer(answer.body["access_token"])
    assert caller.get("/api/protected").data["user"]["id"] == machine.row.owner_id
    assert caller.post("/orders", {"item": "Tea", "qty": 1}).data["user_id"] == machine.row.owner_id
    assert caller.get("/orders").code == "INSUFFICIENT_SCOPE"


@pytest.mark.parametrize("scope", [None, "", " ", "payments:read", "users:read payments:read", "users:fly"])
def test_scope_that_is_none_or_not_allowed_is_invalid_scope(machine, scope):
    answer = machine.act(scope)
    assert (answer.status, answer.body["error"]) == (400, "invalid_scope")
    assert "users:read orders:read orders:write" in answer.body["error_description"]


def test_application_is_allowed_no_scope_by_default(make_user):
    row = Application(name="New", owner=make_user(), client_type="confidential")
    assert row.allowed_scopes == []
    machine = register(make_user(), grant="client-credentials", allowed_scopes=[])
    assert machine.act().body["error"] == "invalid_scope"


def test_application_without_an_owner_gets_no_token(machine):
    Application.objects.update(owner=None)
    answer = machine.act()
    assert (answer.status, answer.body["error"]) == (400, "unauthorized_client")


def test_application_of_a_deactivated_owner_gets_no_token(machine, admin):
    token = machine.act().body["access_token"]
    assert admin.patch(f"/users/{machine.row.owner_id}", {"status": "inactive"}).status == 200
    assert machine.act().body["error"] == "unauthorized_client"
    assert bearer(token).get("/api/protected").status == 401


def test_application_goes_with_its_owner(machine, admin):
    token = machine.act().body["access_token"]
    assert admin.delete(f"/users/{machine.row.owner_id}").status == 204
    assert bearer(token).get("/api/protected").status == 401
    assert machine.act().status == 401
    assert not Application.objects.exists()


@pytest.mark.parametrize("kind", ["client", "public"])
def test_application_of_another_grant_gets_no_token(kind, request):
    assert request.getfixturevalue(kind).act().body["error"] in {"unauthorized_client", "invalid_client"}


def test_machine_cannot_ask_people_for_consent(machine, person):
    machine.row.redirect_uris = "https://client.example/callback"
    machine.row.save()
    assert person.decide(machine)["error"] == "unauthorized_client"
