"""The audit trail: what happens to credentials is written down, and never a secret."""

import json
import re

import pytest
from django.test import Client

from accounts.services import create_api_key
from config import audit
from config.models import AuditEvent
from tests.accounts.conftest import WRONG, log_in, log_out, refresh
from tests.accounts.oauth.actors import bearer
from tests.conftest import PASSWORD, Caller, with_password
from tests.service import CHECKOUT

pytestmark = pytest.mark.usefixtures("one_minute")

NEW = "four other words instead"


def events():
    return [(event.event, event.user_id) for event in AuditEvent.objects.order_by("id")]


def test_login_and_what_follows_are_noted(owner):
    pair = log_in(owner.email).data
    new = refresh(pair["refresh_token"]).data
    log_out(new["refresh_token"])
    log_out(new["refresh_token"])
    assert events() == [("login", owner.pk), ("token.refreshed", owner.pk), ("logout", owner.pk)]


def test_reuse_is_noted_once_although_the_answer_is_an_error(owner):
    pair = log_in(owner.email).data
    bearer(refresh(pair["refresh_token"]).data["access_token"]).get("/users")
    for _ in range(2):
        refresh(pair["refresh_token"])
    assert events()[2:] == [("token.reused", owner.pk)]


@pytest.mark.parametrize("door", ["login", "basic", "session"])
def test_failures_and_refusals_are_noted_with_their_door(owner, door):
    for password in [WRONG] * 10 + [PASSWORD]:
        match door:
            case "login":
                log_in(owner.email, password)
            case "basic":
                with_password(owner, password).get("/users")
            case "session":
                Client().post("/admin/login/", {"username": owner.email, "password": password})
    assert events() == [("login.failed", owner.pk)] * 10 + [("login.refused", owner.pk)]
    assert {event.facts["door"] for event in AuditEvent.objects.all()} == {door}


def test_failure_of_an_account_that_is_none_is_noted_without_what_was_sent(db, told):
    log_in("my-own-password@example.com")
    (event,) = AuditEvent.objects.all()
    assert (event.event, event.user, event.facts) == ("login.failed", None, {"door": "login"})
    assert "my-own-password" not in json.dumps(told())


def test_bad_api_key_is_noted(owner, nobody):
    key = create_api_key(owner, name="test")[1]
    owner.api_keys.update(revoked_at=owner.created_at)
    assert Caller(headers={"X-API-Key": "urs_none"}).get("/users").status == 401
    assert nobody.get(f"/users?api_key={key}").status == 401
    assert [event for event, _ in events()] == ["api_key.created", "api_key.refused", "api_key.refused"]


def test_password_changes_are_noted_by_every_door(owner, admin):
    client = Client()
    client.force_login(owner.__class__.objects.get(pk=admin.user.pk))
    AuditEvent.objects.all().delete()
    body = {"password": NEW, "current_password": PASSWORD}
    assert with_password(owner).patch(f"/users/{owner.pk}", body).status == 200
    page = f"/admin/users/user/{owner.pk}/password/"
    assert client.post(page, {"password1": PASSWORD, "password2": PASSWORD}).status_code == 302
    assert events() == [("password.changed", owner.pk)] * 2


def test_change_that_is_refused_is_not_noted(owner, make_user):
    body = {"password": NEW, "current_password": PASSWORD, "email": make_user().email}
    assert with_password(owner).patch(f"/users/{owner.pk}", body).status == 409
    assert events() == []


def test_sign_in_and_out_of_the_admin_are_noted(make_user):
    row = make_user("admin", password=PASSWORD)
    client = Client()
    assert client.post("/admin/login/", {"username": row.email, "password": PASSWORD}).status_code == 302
    assert client.post("/admin/logout/").status_code == 302
    assert events() == [("login", row.pk), ("logout", row.pk)]


def test_event_tells_address_and_request_and_so_does_the_log(owner, told):
    log_in(owner.email, WRONG, x_request_id="try-1")
    (event,) = AuditEvent.objects.all()
    assert (event.address, event.request_id) == ("127.0.0.1", "try-1")
    (line,) = told()
    assert (line["logger"], line["message"], line["user"]) == ("audit", "login.failed", owner.pk)
    assert (line["request_id"], line["address"], line["door"]) == ("try-1", "127.0.0.1", "login")


@pytest.mark.parametrize("zone", ["eth0", "a" * 300])
def test_zone_of_an_address_that_a_proxy_tells_is_left_out(owner, nobody, settings, zone):
    settings.TRUSTED_PROXIES = 1
    source = {"x_forwarded_for": f"fe80::1%{zone}"}
    assert log_in(owner.email, WRONG, **source).status == 401
    assert nobody.get("/users", x_api_key="urs_none", **source).status == 401
    assert {event.address for event in AuditEvent.objects.all()} == {"fe80::1"}


def test_every_line_of_the_log_has_the_id_of_its_request(admin, told, monkeypatch):
    monkeypatch.setattr("users.permissions.UserPermission.has_permission", lambda *args, **kwargs: 1 / 0)
    assert admin.get("/users", x_request_id="try-2").status == 500
    # The caller's key was made before there was a request.
    lines = [line for line in told() if line["message"] != "api_key.created"]
    assert {line["request_id"] for line in lines} == {"try-2"}
    assert any("ZeroDivisionError" in line.get("exception", "") for line in lines)


def events_of_the_documentation() -> set[str]:
    """The first cells of the table; in one cell, `.removed` is short for the same thing with another happening."""
    text = (CHECKOUT / "docs" / "operate.md").read_text()
    table = text.partition("| Event | Meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    found: set[str] = set()
    for line in table.splitlines():
        first, *others = re.findall("`(.+?)`", line.split("|")[1])
        thing = first.partition(".")[0]
        found |= {first, *(thing + name if name.startswith(".") else name for name in others)}
    return found


def test_events_are_those_that_the_operators_manual_explains():
    assert events_of_the_documentation() == {*audit.EVENTS}


@pytest.fixture
def browser(make_user):
    client = Client()
    client.force_login(make_user("support"))
    return client


def test_page_of_a_user_shows_its_recent_events_and_leads_to_all(owner, other, browser):
    log_in(owner.email)
    page = browser.get(f"/admin/users/user/{owner.pk}/change/").content.decode()
    assert re.search(r"<td[^>]*>login</td>\s*<td[^>]*>door: login</td>\s*<td[^>]*>127.0.0.1</td>", page)
    every = f"/admin/config/auditevent/?user__id__exact={owner.pk}"
    assert every in page
    assert "1 audit event" in browser.get(every).content.decode()
    another = browser.get(f"/admin/users/user/{other.user.pk}/change/").content.decode()
    assert "127.0.0.1" not in another


def test_events_of_a_user_go_with_it(owner, admin):
    log_in(owner.email)
    assert admin.delete(f"/users/{owner.pk}").status == 204
    assert set(events()) == {("api_key.created", admin.user.pk), ("user.removed", None)}
