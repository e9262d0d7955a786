"""What is a user's own: where it is signed in, everything that belongs to it, and the page on which it ends both."""

import json
from uuid import uuid4

import pytest
from django.test import Client

from accounts.models import Session
from config.api.versions.usage import uses
from config.models import AuditEvent
from orders.models import Order
from posts.models import Post
from tests.accounts.conftest import log_in, refresh, refused
from tests.accounts.oauth.actors import bearer, register
from tests.admin.test_pages import SECRET, create_rows
from tests.conftest import PASSWORD, new_client, with_key, with_password
from users.archive import get_archived_fields
from users.models import User

AGENT = "Mozilla/5.0 (X11) Ünusual\x01"


@pytest.fixture
def browser(owner: User) -> Client:
    client = new_client(checks_csrf=False)
    form = {"username": owner.email, "password": PASSWORD}
    assert client.post("/session/login", form, headers={"user-agent": AGENT}).status_code == 302
    return client


def get_ids(caller, kind):
    return [each["id"] for each in caller.get("/api/v2/sessions").data if each["kind"] == kind]


def test_sessions_are_ones_own_and_tell_where_they_are(owner, other, browser, pair):
    log_in(other.user.email)
    browser.get("/session/account")
    jwt, session = bearer(pair["access_token"]).get("/api/v1/sessions").data
    assert [jwt["kind"], session["kind"]] == ["jwt", "session"]
    assert [jwt["address"], session["address"]] == ["127.0.0.1", "127.0.0.1"]
    assert "Ünusual" in session["user_agent"]
    assert "\x01" not in session["user_agent"]
    assert all(each["created_at"] <= each["last_used_at"] for each in (jwt, session))
    assert session["id"] not in str(browser.cookies)
    assert (
        browser.get("/api/v2/sessions", headers={"accept": "application/json"}).json()["data"][1]["id"] == session["id"]
    )


def test_ended_session_is_refused_from_the_next_request_on(owner, browser, pair):
    caller = bearer(pair["access_token"])
    (session,), (jwt,) = get_ids(caller, "session"), get_ids(caller, "jwt")
    assert caller.delete(f"/sessions/{session}").status == 204
    assert browser.get("/session/account").status_code == 302
    assert caller.delete(f"/sessions/{session}").status == 404
    assert with_password(owner).delete(f"/api/v2/sessions/{jwt}").status == 204
    assert refused(caller.get("/api/protected"))
    assert refused(refresh(pair["refresh_token"]))
    assert with_password(owner).get("/sessions").data == []
    assert AuditEvent.objects.filter(event="session.ended", user=owner).count() == 2


def test_session_that_is_not_ones_own_is_not_there(make_user, browser, pair):
    caller = bearer(pair["access_token"])
    stranger = with_password(make_user(password=PASSWORD))
    for name in ("x", "1", "%00", uuid4(), *get_ids(caller, "jwt"), *get_ids(caller, "session")):
        assert stranger.delete(f"/sessions/{name}").status == 404, name
    assert len(caller.get("/sessions").data) == 2


def test_sessions_of_an_earlier_password_are_not_shown(owner, browser, pair):
    body = {"password": "four other words instead", "current_password": PASSWORD}
    assert bearer(pair["access_token"]).patch(f"/users/{owner.pk}", body).status == 200
    assert with_password(owner, body["password"]).get("/sessions").data == []


def test_use_of_a_browser_is_noted_once_a_minute(browser):
    Session.objects.update(last_used_at="2026-01-01T00:00:00Z")
    browser.get("/session/account")
    uses.write()
    (used,) = Session.objects.values_list("last_used_at", flat=True)
    browser.get("/session/account")
    uses.write()
    assert [used] == list(Session.objects.values_list("last_used_at", flat=True))
    assert used.year > 2026 or used.month > 1


# --- The archive


def read_archive(caller, user):
    response = caller.fetch("GET", f"/api/v2/users/{user.pk}/archive")
    assert (response.status_code, response["Content-Type"]) == (200, "application/x-ndjson")
    content = b"".join(response) if response.streaming else response.content
    return content.decode(), [json.loads(line) for line in content.splitlines()]


def test_every_model_that_refers_to_a_user_says_what_belongs_in_its_archive():
    models = {relation.related_model for relation in User._meta.related_objects}
    undeclared = {model._meta.label for model in models if get_archived_fields(model) is None}
    assert not undeclared
    for model in models:
        for name in get_archived_fields(model):
            assert not {"digest", "secret", "token", "password", "session_key"} & set(name.split("_")), (model, name)
            model._meta.get_field(name.partition("__")[0])


def test_archive_has_all_that_belongs_to_the_user_and_nothing_else(owner, other, browser):
    create_rows(owner, 2)
    create_rows(other.user, 1)
    Post.objects.create(user=owner, title="Long \u2028", body="x" * 20_000)
    Post.objects.bulk_create(Post(user=owner, title=f"T{number}") for number in range(500))
    text, lines = read_archive(with_password(owner), owner)
    assert lines[0] == {"kind": "user", "data": {**lines[0]["data"], "id": owner.pk, "email": owner.email}}
    counts = {kind: sum(line["kind"] == kind for line in lines) for kind in {line["kind"] for line in lines}}
    expected = {"order": 2, "payment": 2, "post": 503, "comment": 2, "apikey": 2, "session": 1}
    assert {name: counts[name] for name in expected} == expected
    assert counts.keys() >= {"loginsession", "auditevent", "versionuse", "refreshtoken"}
    assert SECRET not in text
    assert owner.password not in text
    assert other.user.email not in text
    assert "127.0.0.1" not in "".join(json.dumps(line) for line in lines if line["kind"] == "auditevent")
    ids = {line["data"]["id"] for line in lines if line["kind"] == "order"}
    assert ids == set(Order.objects.filter(user=owner).values_list("pk", flat=True))


def test_archive_is_for_oneself_and_for_administrators(owner, make_user, admin):
    assert read_archive(with_password(make_user("admin", password=PASSWORD)), owner)[1]
    assert with_password(make_user("support", password=PASSWORD)).get(f"/users/{owner.pk}/archive").status == 403
    for caller, user, status in (
        (admin, owner, 403),
        (with_key(owner), owner, 403),
        (with_password(make_user(password=PASSWORD)), owner, 404),
    ):
        assert caller.get(f"/users/{user.pk}/archive").status == status
    assert AuditEvent.objects.filter(event="archive.exported", user=owner, facts__by__gt=0).exists()


# --- The page


def test_page_shows_what_is_ones_own_and_ends_it(owner, browser, pair):
    register(owner)
    key = with_key(owner)
    shown = browser.get("/session/account").content.decode()
    assert all(part in shown for part in ("127.0.0.1", "Browser (this session)", "API key test", "/archive"))
    jwt = get_ids(with_password(owner), "jwt")[0]
    assert browser.post("/session/account", {"end": jwt}).status_code == 302
    assert refused(bearer(pair["access_token"]).get("/api/protected"))
    assert browser.post("/session/account", {"end": jwt}).status_code == 400
    assert key.get("/api/protected").status == 200


def test_page_removes_oneself_with_the_password_alone(owner, browser, make_user):
    refusal = browser.post("/session/account", {"remove": "yes", "password": "wrong"})
    assert refusal.status_code == 400
    assert 'role="alert"' in refusal.content.decode()
    assert User.objects.filter(pk=owner.pk).exists()
    assert browser.post("/session/account", {"remove": "yes", "password": PASSWORD}).status_code == 302
    assert not User.objects.filter(pk=owner.pk).exists()
    assert browser.get("/session/account").status_code == 302


def test_last_administrator_cannot_leave(owner, browser):
    User.objects.filter(pk=owner.pk).update(role="admin")
    refusal = browser.post("/session/account", {"remove": "yes", "password": PASSWORD})
    assert "last active administrator" in refusal.content.decode()
    assert User.objects.filter(pk=owner.pk).exists()
