"""Forgotten passwords, verified emails and invitations."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import services as accounts
from config.models import AuditEvent
from tests.accounts.oauth.actors import Person, bearer, register
from tests.admin.test_pages import signed_in
from tests.conftest import PASSWORD, Caller, new_client, with_bearer_of, with_key, with_password
from tests.users.mail import (
    NEW_PASSWORD,
    SET_BY_API,
    VERIFY_BY_API,
    ask_api,
    ask_page,
    make_token,
    read_links,
    read_token,
    statuses,
    use_page,
)
from tests.users.test_admin_import import choose
from users import services
from users.links import Purpose
from users.models import User

EMAIL = "Ann@example.com"
ASK = {"API": ask_api, "page": ask_page}
SET = {"API": (SET_BY_API, 204), "page": (use_page("reset"), 200)}
VERIFY = {"API": (VERIFY_BY_API, 204), "page": (use_page("verify"), 200)}
RESET, VERIFICATION, INVITATION = Purpose


@pytest.fixture
def ann(make_user: Any) -> User:
    return make_user(name="Ann", email=EMAIL, password=PASSWORD)


def change(user: User, **changes: Any) -> None:
    services.change(User.objects.get(pk=user.pk), changes)


# Of a user who could follow a link, what makes that impossible.
ENDS = {
    "inactive": lambda user: change(user, status="inactive"),
    "removed": services.remove,
    "another email": lambda user: change(user, email="new@example.com"),
    "another password": lambda user: change(user, password=NEW_PASSWORD),
    "no password": lambda user: change(user, password=None),
    "credentials ended": accounts.end_credentials,
    "verified": lambda user: change(user, email_verified_at=timezone.now()),
}


@pytest.mark.parametrize("door", ASK)
@pytest.mark.parametrize("end", ["inactive", "removed", "no password", "verified"])
def test_reset_is_answered_the_same_whoever_it_is_for(ann, door, end):
    status, body = ASK[door]("nobody@example.com")
    ENDS[end](ann)
    assert (status, hide_csrf(body)) == ({"API": 202, "page": 200}[door], hide_csrf(ASK[door]("ANN@example.com")[1]))
    assert len(read_links()) == (end == "verified")
    assert {message.to[0] for message in mail.outbox} <= {EMAIL}


def hide_csrf(body: bytes) -> bytes:
    return re.sub(rb'(csrfmiddlewaretoken" value=)"\w+"', rb"\1", body)


def test_reset_asks_the_database_as_much_whoever_it_is_for(ann):
    counts = []
    for email in (EMAIL, "nobody@example.com", "none"):
        with CaptureQueriesContext(connection) as captured:
            ask_api(email)
        counts.append(len(captured))
    assert counts == [counts[0]] * 3


@pytest.mark.parametrize("purpose", [RESET, INVITATION])
@pytest.mark.parametrize("door", SET)
def test_link_sets_the_password_once_and_ends_what_a_change_ends(ann, door, purpose):
    use, done = SET[door]
    browser, bearer, key = signed_in(ann), with_bearer_of(ann), with_key(ann)
    token = make_token(purpose, ann)
    assert [use(token), use(token)] == [done, 404]
    assert with_password(ann, NEW_PASSWORD).get("/api/protected").status == 200
    assert with_password(ann).get("/api/protected").status == 401
    assert [bearer.get("/users").status, browser.get("/users").status_code, key.get("/users").status] == [401, 401, 200]
    assert User.objects.get(pk=ann.pk).email_verified_at is not None


@pytest.mark.parametrize("door", VERIFY)
def test_link_verifies_the_email_once_and_another_email_is_unverified(ann, admin, door):
    use, done = VERIFY[door]
    token = make_token(VERIFICATION, ann)
    assert [use(token), use(token)] == [done, 404]
    path = f"/users/{ann.pk}"
    shown = admin.get(path).data["email_verified_at"]
    assert shown is not None
    assert admin.patch(path, {"name": "Anne"}).data["email_verified_at"] == shown
    assert admin.patch(path, {"email": "anne@example.com"}).data["email_verified_at"] is None
    assert admin.patch(f"/api/v2{path}", {"email_verified_at": shown}).fields == {"email_verified_at"}


@pytest.mark.parametrize(("purpose", "doors"), [(RESET, SET), (INVITATION, SET), (VERIFICATION, VERIFY)])
@pytest.mark.parametrize("end", ENDS)
def test_link_dies_with_every_change_of_what_it_is_made_from(ann, purpose, doors, end):
    token = make_token(purpose, ann)
    ENDS[end](ann)
    before = User._base_manager.values().get(pk=ann.pk)
    assert {use(token) for use, _ in doors.values()} == {404}
    assert User._base_manager.values().get(pk=ann.pk) == before


@pytest.mark.parametrize(("purpose", "doors"), [(RESET, SET), (INVITATION, SET), (VERIFICATION, VERIFY)])
def test_link_has_an_end_and_a_purpose_and_cannot_be_made_up(ann, make_user, settings, purpose, doors):
    other = make_user()
    good = make_token(purpose, ann)
    head, _, signature = good.rpartition("-")
    bad = [
        make_token(purpose, ann, purpose.lifetime),
        *(make_token(each, ann) for each in ({*Purpose} - {purpose}) if doors is VERIFY),
    ]
    bad += [make_token(VERIFICATION, ann)] if doors is SET else []
    bad += [
        good[:-1],
        f"{head}-{'0' * len(signature)}",
        make_token(purpose, other).rpartition("-")[0] + f"-{signature}",
    ]
    bad += ["x", "-", "password_reset-zz-zz-zz", "password_reset-9zzzzzzzzzzzz-1-1", "%00", "\u00fc", "x" * 300]
    # From the last second of the year 9999, no time can be added to.
    bad += [f"{purpose}-1-38et6qnz-x"]
    for token in bad:
        assert {use(token) for use, _ in doors.values()} == {404}, token
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key" * 9
    use, done = doors["API"]
    young = make_token(purpose, ann, purpose.lifetime - timedelta(minutes=1))
    assert (use(young), use(good)) == (done, 404)


@pytest.mark.parametrize(
    ("purpose", "leads_to"),
    [(RESET, ["reset"]), (INVITATION, ["login"]), (VERIFICATION, ["login", "reset"])],
)
def test_page_of_an_expired_link_says_how_to_go_on(ann, settings, purpose, leads_to):
    token = make_token(purpose, ann, purpose.lifetime)
    path = f"/session/{'verify' if purpose is VERIFICATION else 'reset'}/{token}"
    browser = new_client(checks_csrf=False)
    for page in (browser.get(path), browser.post(path, {"password": NEW_PASSWORD})):
        shown = page.content.decode()
        main = shown[shown.index("<main") : shown.index("</main>")]
        assert (page.status_code, "has expired or was used" in main, token in shown) == (404, True, False)
        assert re.findall('href="/session/([a-z]+)"', main) == leads_to
        assert '<meta name="referrer" content="strict-origin">' in shown
    settings.SENDS_MAIL = False
    assert b'href="/session/reset"' not in browser.get(path).content


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_uses_one_sets_the_password(ann, at_once):
    token = make_token(RESET, ann)
    statuses = at_once([lambda: SET_BY_API(token)] * 20)
    assert sorted(statuses) == [204] + [404] * 19


@pytest.mark.parametrize("purpose", [RESET, VERIFICATION])
def test_opening_a_link_or_a_weak_password_uses_nothing_up(ann, purpose):
    token = make_token(purpose, ann)
    path = f"/session/{'verify' if purpose is VERIFICATION else 'reset'}/{token}"
    for page in (new_client().get(path), new_client().get(path)):
        assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-store")
        # To this origin itself, a browser would otherwise tell the whole address.
        assert '<meta name="referrer" content="strict-origin">' in page.content.decode()
        assert token not in page.content.decode()
    if purpose is RESET:
        for weak in ("12345678", "ann@example.com", "x" * 129, "a\0b" * 9):
            answer = Caller().post(f"/api/password-resets/{token}", {"password": weak})
            assert (answer.status, answer.fields) == (400, {"password"})
            assert new_client(checks_csrf=False).post(path, {"password": weak}).status_code == 400
        assert new_client().post(path, {"password": NEW_PASSWORD}).status_code == 403
        assert SET_BY_API(token) == 204
    else:
        assert VERIFY_BY_API(token) == 204


def test_messages_are_limited_as_failed_logins_are_whoever_they_are_for(ann, make_user, settings, one_minute):
    settings.RATE_LIMIT_LOGIN_ACCOUNT, settings.RATE_LIMIT_LOGIN_ADDRESS = 2, 5
    assert [ask_api(email)[0] for email in [EMAIL, "ann@EXAMPLE.com", EMAIL]] == [202, 202, 429]
    assert [ask_api("nobody@example.com")[0] for _ in range(3)] == [202, 202, 429]
    assert ask_page("someone@example.com")[0] == 429
    assert with_key(ann).post(f"/users/{ann.pk}/email-verifications").status == 429
    assert with_password(ann).get("/api/protected").status == 200


def test_user_and_administrator_ask_for_a_verification(ann, admin, nobody):
    path = f"/api/v2/users/{ann.pk}/email-verifications"
    for caller in (with_key(ann), admin):
        answer = caller.post(path)
        assert (answer.status, answer.data) == (202, {"expires_in": 604_800})
    assert len(read_links()) == 2
    assert admin.post(path, {"more": 1}).fields == {"more"}
    change(ann, email_verified_at=timezone.now())
    assert admin.post(path).fields == {"email"}


def test_administrator_invites_who_has_no_password(admin, make_user):
    new = make_user(email="new@example.com")
    path = f"/users/{new.pk}/invitations"
    assert admin.post(path).data == {"expires_in": 604_800}
    token = read_token()
    assert mail.outbox[0].alternatives[0][0].count(token) == 1
    assert SET_BY_API(token) == 204
    assert with_password(new, NEW_PASSWORD).get("/api/protected").data["user"]["id"] == new.pk
    assert (admin.post(path).status, admin.post(path).fields) == (409, {"password"})
    idle = make_user(status="inactive")
    assert admin.post(f"/users/{idle.pk}/invitations").status == 409


def with_access_token(user: User) -> Caller:
    client = register(allowed_scopes=["users:write"])
    return bearer(Person(user).tokens(client, scope="users:write")["access_token"])


def count_resets(email: str) -> int:
    """How many messages are sent when a reset is asked for, which is answered as it is for nobody."""
    assert ask_api(email) == ask_api("nobody@example.com")
    return len(read_links())


@pytest.mark.parametrize("way", ["PATCH own", "PUT other"])
@pytest.mark.parametrize(
    ("sign_in", "resets"), [(with_bearer_of, 1), (with_password, 1), (with_key, 0), (with_access_token, 0)]
)
def test_reset_is_mailed_to_no_email_that_was_given_without_the_password(ann, make_user, sign_in, way, resets):
    chief, path = make_user("admin", password=PASSWORD), f"/users/{ann.pk}"
    method, _, whose = way.partition(" ")
    caller = sign_in(ann if whose == "own" else chief)
    assert caller(method, path, {"name": "Ann", "email": EMAIL}).status == 200
    assert count_resets(EMAIL) == 1
    # Basic names the email, which is another one after its first change.
    for email in ("new@example.com", EMAIL)[: 1 if sign_in is with_password else 2]:
        assert caller(method, path, {"name": "Ann", "email": email}).status == 200
        assert count_resets(email) == resets
    for asked_by in (with_key(chief), with_bearer_of(chief)):
        assert asked_by.post(f"{path}/email-verifications").status == 202
    assert VERIFY_BY_API(read_links()[0].rpartition("/")[2]) == 204
    with_bearer_of(ann).put(path, {"name": "Anne", "email": email})
    assert count_resets(email) == resets
    with_bearer_of(ann).patch(path, {"email": "back@example.com"})
    assert count_resets("back@example.com") == 1


def test_admin_page_makes_an_email_one_that_resets_are_mailed_to(ann, make_user):
    with_key(ann).patch(f"/users/{ann.pk}", {"email": "new@example.com"})
    pages, form = signed_in(make_user("admin")), {"name": "Anne", "role": "user", "status": "active"}
    for email, resets in (("new@example.com", 0), (EMAIL, 1)):
        assert pages.post(f"/admin/users/user/{ann.pk}/change/", {**form, "email": email}).status_code == 302
        assert count_resets(email) == resets


@pytest.mark.parametrize("sign_in", [with_key, with_access_token])
def test_who_gives_an_email_without_the_password_does_not_invite_to_it(make_user, sign_in):
    chief, email = make_user("admin"), "new@example.com"
    caller, new = sign_in(chief), make_user("admin", email=email)
    path = f"/users/{new.pk}"
    assert caller.post(f"{path}/invitations").status == 202
    earlier = read_token()
    for changed in ("else@example.com", email):
        assert caller.patch(path, {"email": changed}).status == 200
        assert caller.post(f"{path}/invitations").fields == {"email"}
    assert (SET_BY_API(earlier), read_links()) == (404, [])
    assert with_bearer_of(chief).post(f"{path}/invitations").status == 202
    assert SET_BY_API(read_token()) == 204
    assert count_resets(email) == 1


def test_key_invites_whom_it_added_and_who_may_reset_the_password_later(admin):
    email = "new@example.com"
    new = admin.post("/users", {"name": "New", "email": email}).data["id"]
    assert admin.post(f"/users/{new}/invitations").status == 202
    assert SET_BY_API(read_token()) == 204
    assert count_resets(email) == 1


def test_admin_invites_many_and_so_does_the_import(ann, make_user, settings):
    pages = signed_in(make_user("admin", password=PASSWORD))
    chosen = [ann, make_user(email="a@example.com"), make_user(email="b@example.com"), make_user(status="inactive")]
    form = {"action": "invite", "_selected_action": [str(user.pk) for user in chosen], "post": "yes"}
    answer = pages.post("/admin/users/user/", form, follow=True)
    assert "Invited 2 users. Skipped 2 who have a password or are inactive." in answer.content.decode()
    preview = choose(pages, "name,email\nA,c@example.com\n").content.decode()
    content = re.search(r'name="content" value="([^"]+)"', preview)[1]
    pages.post("/admin/users/user/import/", {"content": content, "invite": "on"})
    assert len(read_links()) == 3
    assert [message.to for message in mail.outbox] == [["a@example.com"], ["b@example.com"], ["c@example.com"]]
    settings.SENDS_MAIL = False
    assert "invite" not in pages.get("/admin/users/user/").content.decode()
    assert "invite" not in choose(pages, "name,email\nA,d@example.com\n").content.decode()


def test_what_sends_mail_is_not_there_without_a_mail_server(ann, admin, settings):
    token = make_token(RESET, ann)
    settings.SENDS_MAIL = False
    for path in ("/api/password-resets", f"/users/{ann.pk}/email-verifications", f"/users/{ann.pk}/invitations"):
        for method in ("POST", "OPTIONS", "GET"):
            assert admin(method, path, {"email": EMAIL}).status == 404, (method, path)
    assert [new_client().get(path).status_code for path in ("/session/reset", "/session/login")] == [404, 200]
    assert b"/session/reset" not in new_client().get("/session/login").content
    assert SET_BY_API(token) == 204


def test_login_may_need_a_verified_email(ann, nobody, settings):
    settings.REQUIRE_VERIFIED_EMAIL = settings.OPEN_SIGNUP = True
    login = {"email": EMAIL, "password": PASSWORD}
    form = {"username": EMAIL, "password": PASSWORD}
    refused = nobody.post("/api/login", login)
    assert (refused.status, refused.fields) == (403, {"email"})
    assert with_password(ann).post("/orders", {"item": "Tea", "qty": 1}).fields == {"email"}
    assert new_client(checks_csrf=False).post("/session/login", form).status_code == 403
    assert nobody.post("/api/login", {**login, "password": "wrong"}).code == "INVALID_CREDENTIALS"
    assert nobody.post("/users", {"name": "New", "email": "new@example.com", "password": PASSWORD}).status == 201
    assert VERIFY_BY_API(read_token()) == 204
    assert nobody.post("/api/login", {**login, "email": "new@example.com"}).status == 200
    change(ann, email_verified_at=timezone.now())
    assert new_client(checks_csrf=False).post("/session/login", form).status_code == 302


def test_trail_tells_who_asked_and_what_was_used(ann, admin):
    ask_api(EMAIL)
    ask_api("nobody@example.com")
    admin.post(f"/users/{ann.pk}/email-verifications")
    reset, verification = (link.rpartition("/")[2] for link in read_links())
    VERIFY_BY_API(verification)
    SET_BY_API(make_token(RESET, User.objects.get(pk=ann.pk)))
    assert SET_BY_API(reset) == 404
    told = AuditEvent.objects.exclude(event__startswith="api_key").order_by("id").values_list("event", "user", "facts")
    by_nobody = {"credential": "none"}
    assert [*told] == [
        ("password_reset.requested", ann.pk, by_nobody),
        ("password_reset.requested", None, by_nobody),
        ("email_verification.requested", ann.pk, {"credential": "api_key", "by": admin.user.pk}),
        ("email_verification.used", ann.pk, by_nobody),
        ("user.changed", ann.pk, {**by_nobody, "changed": ["email_verified_at"]}),
        ("password_reset.used", ann.pk, by_nobody),
        ("password.changed", ann.pk, {}),
    ]
    assert statuses() == ["sent", "dropped", "sent"]
    assert not any(token.rpartition("-")[2] in str(AuditEvent.objects.values()) for token in (reset, verification))
