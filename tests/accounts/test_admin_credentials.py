"""The admin's actions on keys, tokens and the status of users."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command

from accounts.models import APIKey
from accounts.services import create_api_key
from config.models import AuditEvent
from tests.accounts.conftest import run_action
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import PASSWORD, with_bearer_of, with_key, with_password
from users.models import User

KEYS = "/admin/accounts/apikey/"
USERS = "/admin/users/user/"


def get_audit_trail(prefix: str) -> list[tuple[str, Any, Any]]:
    """Lists name, user and actor of the audit events of a kind; the actor is None for the user itself."""
    rows = AuditEvent.objects.filter(event__startswith=f"{prefix}.").order_by("id")
    return [(row.event, row.user_id, row.facts.get("by")) for row in rows]


def get_events() -> list[tuple[str, Any]]:
    return list(AuditEvent.objects.exclude(event="login").order_by("id").values_list("event", "user_id"))


def test_key_is_revoked_after_confirmation(pages, make_user):
    caller = with_key(make_user())
    (row,) = APIKey.objects.all()
    page = run_action(pages, KEYS, "revoke", row, confirmed=False)
    assert "stop working with the next request" in page.content.decode()
    assert caller.get("/api/protected").status == 200
    assert "Revoked 1 keys." in run_action(pages, KEYS, "revoke", row, follow=True).content.decode()
    assert caller.get("/api/protected").status == 401
    assert ("api_key.revoked", caller.user.pk) in get_events()
    assert LogEntry.objects.get().change_message == "Revoked."
    revoked_at = APIKey.objects.get().revoked_at
    assert "Revoked 0 keys." in run_action(pages, KEYS, "revoke", row, follow=True).content.decode()
    assert APIKey.objects.get().revoked_at == revoked_at


def test_each_change_of_a_key_is_audited_once(pages, chief, make_user):
    owner, administrator = with_password(make_user(password=PASSWORD)), with_bearer_of(chief)
    first = owner.post("/api-keys", {"name": "Theirs"}).data
    second = owner.post(f"/api-keys/{first['id']}/rotations", {}).data
    for _ in range(2):
        assert owner.delete(f"/api-keys/{second['id']}").status == 204
        assert administrator.delete(f"/api-keys/{first['id']}").status == 204
    call_command("create_api_key", owner.user.email, stdout=io.StringIO())
    theirs, (mine, _) = APIKey.objects.get(name="command line"), create_api_key(chief, name="Mine")
    for _ in range(2):
        run_action(pages, KEYS, "revoke", theirs, mine)
    assert get_audit_trail("api_key") == [
        ("api_key.created", owner.user.pk, None),
        ("api_key.rotated", owner.user.pk, None),
        ("api_key.revoked", owner.user.pk, None),
        ("api_key.revoked", owner.user.pk, chief.pk),
        ("api_key.created", owner.user.pk, None),
        ("api_key.created", chief.pk, None),
        # In the order of users.
        ("api_key.revoked", chief.pk, None),
        ("api_key.revoked", owner.user.pk, chief.pk),
    ]


def test_users_are_deactivated_and_activated_in_bulk(pages, make_user):
    callers = [with_key(make_user()) for _ in range(3)]
    users = [caller.user for caller in callers]
    versions = set(User.objects.filter(role="user").values_list("row_version", flat=True))
    page = run_action(pages, USERS, "deactivate", *users, confirmed=False)
    assert "until you activate them again" in page.content.decode()
    assert {caller.get("/api/protected").status for caller in callers} == {200}
    assert "Deactivated 3 users." in run_action(pages, USERS, "deactivate", *users, follow=True).content.decode()
    assert {caller.get("/api/protected").status for caller in callers} == {401}
    assert not versions & set(User.objects.filter(role="user").values_list("row_version", flat=True))
    assert pages.get(f"{USERS}?status__exact=inactive").context["cl"].result_count == 3
    assert LogEntry.objects.filter(change_message="Deactivated.").count() == 3
    assert "Activated 3 users." in run_action(pages, USERS, "activate", *users, follow=True).content.decode()
    assert {caller.get("/api/protected").status for caller in callers} == {200}


@pytest.mark.parametrize("action", ["deactivate", "delete_selected"])
def test_bulk_action_on_the_last_administrator_changes_no_user(pages, chief, make_user, action):
    users = [chief, make_user(), make_user()]
    before = list(User._base_manager.order_by("id").values())
    page = run_action(pages, USERS, action, *users, follow=True)
    assert "last active administrator" in page.content.decode()
    assert list(User._base_manager.order_by("id").values()) == before
    assert not LogEntry.objects.exists()


def test_administrator_who_removes_itself_is_signed_out(pages, chief, make_user):
    make_user("admin")
    assert pages.post(f"{USERS}{chief.pk}/delete/", {"post": "yes"}).status_code == 302
    assert User._base_manager.get(pk=chief.pk).removed_at
    assert pages.get("/admin/").status_code == 302


@pytest.mark.parametrize("name", ["accesstoken", "refreshtoken"])
def test_end_grant_ends_tokens_of_the_application_and_the_user(pages, chief, make_user, name):
    from oauth2_provider.models import get_access_token_model, get_refresh_token_model

    person, other = (Person(make_user(password=PASSWORD)) for _ in range(2))
    client = register()
    tokens, theirs = person.tokens(client), other.tokens(client)
    model = {"accesstoken": get_access_token_model(), "refreshtoken": get_refresh_token_model()}[name]
    row = model.objects.get(user=person.user)
    page = run_action(pages, f"/admin/oauth2_provider/{name}/", "end_grant", row, follow=True)
    assert "Revoked 1 grants." in page.content.decode()
    assert bearer(tokens["access_token"]).get("/api/protected").status == 401
    assert client.refresh(tokens["refresh_token"]).status == 400
    assert bearer(theirs["access_token"]).get("/api/protected").status == 200
    assert get_audit_trail("oauth_grant") == [("oauth_grant.ended", person.user.pk, chief.pk)]
    entry = LogEntry.objects.get()
    assert (entry.get_edited_object(), entry.change_message) == (client.row, "Revoked access.")
