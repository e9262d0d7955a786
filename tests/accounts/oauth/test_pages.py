"""The pages for people: sign-in, consent, and the applications one has authorised."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from config.api.principal import SCOPE_TEXTS
from config.models import AuditEvent
from tests.accounts.oauth.actors import CALLBACK, Person, bearer, register, returned
from tests.conftest import PASSWORD

LOGIN = "/session/login"


def sign_in(email, password, after="/oauth/grants", browser=None):
    browser = browser or Client(raise_request_exception=False)
    return browser.post(LOGIN, {"username": email, "password": password, "next": after})


def test_consent_page_says_who_asks_for_what(person, client):
    text = person.look(client).content.decode()
    for part in (
        client.row.name,
        SCOPE_TEXTS["users:read"],
        SCOPE_TEXTS["orders:read"],
        "client.example",
        "Pia Person",
    ):
        assert part in text
    assert SCOPE_TEXTS["orders:write"] not in text


def form_action(response):
    return re.search(r"form-action ([^;]*);", response["Content-Security-Policy"])[1]


@pytest.mark.parametrize(("is_local", "expected"), [(False, "'self' https:"), (True, "'self' https: http:")])
def test_forms_lead_to_an_application_and_on_only_in_an_authorization_request(
    person, client, settings, is_local, expected
):
    settings.LOCAL, settings.DEBUG = is_local, False
    stranger = Client()
    sign_in_page = stranger.get(stranger.get(Person.address(client))["Location"])
    again = sign_in("nobody@example.com", "wrong", Person.address(client))
    assert {form_action(page) for page in (person.look(client), sign_in_page, again)} == {expected}
    others = (LOGIN, f"{LOGIN}?next=/oauth/grants", f"{LOGIN}?next=https://evil.example/oauth/authorize")
    assert {form_action(stranger.get(page)) for page in others} == {"'self'"}
    assert form_action(person.browser.get("/oauth/grants")) == "'self'"


def test_only_pages_of_an_authorization_request_leave_a_popup_its_opener(person, client):
    stranger, address = Client(), Person.address(client)
    refused = Person.address(client, scope="users:fly")
    way = [stranger.get(page) for page in (address, refused, LOGIN, f"{LOGIN}?next=/oauth/grants")]
    way += [person.look(client), person.browser.post(address, {"decision": "deny"}), person.look(client, client_id="x")]
    assert {response["Cross-Origin-Opener-Policy"] for response in way} == {"unsafe-none"}
    assert person.browser.get("/oauth/grants")["Cross-Origin-Opener-Policy"] == "same-origin"


def test_consent_needs_the_csrf_token(person, client):
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.force_login(person.user)
    answer = browser.post(Person.address(client), {"decision": "approve"})
    assert answer.status_code == 403
    browser.cookies["csrftoken"] = "t" * 32
    form = {"decision": "approve", "csrfmiddlewaretoken": "t" * 32}
    assert "code" in returned(browser.post(Person.address(client), form))


def test_consent_sends_a_stranger_through_sign_in_and_back(make_user, client):
    user = make_user(password=PASSWORD)
    stranger = Person(user, signed_in=False)
    for answer in (stranger.look(client), stranger.browser.post(Person.address(client), {"decision": "approve"})):
        assert answer.status_code == 302
        assert answer["Location"].startswith(f"{LOGIN}?next=/oauth/authorize")
    address = Person.address(client)
    answer = sign_in(user.email, PASSWORD, address, stranger.browser)
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert "code" in stranger.decide(client)


def test_wrong_request_is_refused_before_sign_in(make_user, client):
    stranger = Person(make_user(), signed_in=False)
    assert returned(stranger.look(client, scope="users:fly"))["error"] == "invalid_scope"
    assert stranger.look(client, redirect_uri="https://evil.example").status_code == 400


@pytest.mark.parametrize("role", ["user", "support", "admin"])
def test_any_active_user_signs_in(make_user, role):
    user = make_user(role, password=PASSWORD)
    browser = Client()
    assert sign_in(user.email.upper(), PASSWORD, browser=browser)["Location"] == "/oauth/grants"
    assert browser.get("/api/protected").json()["data"]["credential"]["kind"] == "session"


@pytest.mark.parametrize(
    "after",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "http:///evil",
    ],
)
def test_sign_in_leads_to_this_host_only(make_user, after):
    user = make_user(password=PASSWORD)
    assert sign_in(user.email, PASSWORD, after)["Location"] == "/"


@pytest.fixture
def wrong(make_user):
    return {
        "password": (make_user(password=PASSWORD).email, "not this one"),
        "email": ("nobody@example.com", PASSWORD),
        "inactive": (make_user(password=PASSWORD, status="inactive").email, PASSWORD),
        "without a password": (make_user().email, PASSWORD),
        "hostile": ("a\0b@example.com", PASSWORD),
    }


def test_sign_in_answers_the_same_whatever_is_wrong(wrong):
    def shown(email, password):
        response = sign_in(email, password)
        text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", response.content.decode())
        return response.status_code, text.replace(email.replace("\0", ""), "").replace(email, "")

    first = shown(*wrong["password"])
    assert first[0] == 200
    assert "Wrong email or password." in first[1]
    for name in ("email", "inactive", "without a password"):
        assert shown(*wrong[name]) == first, name
    assert shown(*wrong["hostile"])[0] == 200


def test_sign_out_ends_the_session(person):
    assert person.browser.get("/session/logout").status_code == 405
    assert person.browser.post("/session/logout")["Location"] == LOGIN
    assert person.browser.get("/oauth/grants").status_code == 302


def test_applications_page_lists_what_one_has_authorised(person, client, make_user):
    assert client.row.name not in person.browser.get("/oauth/grants").content.decode()
    Person(make_user()).tokens(register(name="Elsewhere"))
    person.tokens(client)
    person.tokens(client)
    text = person.browser.get("/oauth/grants").content.decode()
    assert text.count(f"<h2>{client.row.name}</h2>") == 1
    assert "Elsewhere" not in text
    assert f"Access since {timezone.now():%-d %B %Y}" in text
    assert "<code>users:read</code>" in text


def test_ending_a_grant_kills_its_tokens_and_codes_and_no_others(person, client, make_user):
    mine, another = person.tokens(client), person.tokens(client)
    code, kept = person.code(client), person.tokens(register(name="Kept"))
    others = Person(make_user()).tokens(client)
    answer = person.browser.post("/oauth/grants", {"client_id": client.client_id})
    assert (answer.status_code, answer["Location"]) == (302, "/oauth/grants")
    for tokens in (mine, another):
        assert bearer(tokens["access_token"]).get("/api/protected").status == 401
        assert client.refresh(tokens["refresh_token"]).status == 400
    assert client.exchange(code).body["error"] == "invalid_grant"
    assert bearer(kept["access_token"]).get("/api/protected").status == 200
    assert bearer(others["access_token"]).get("/api/protected").status == 200
    assert client.row.name not in person.browser.get("/oauth/grants").content.decode()


def test_what_happens_is_noted_without_secrets(person, client, machine):
    code = person.code(client)
    tokens = client.exchange(code).body
    second = client.refresh(tokens["refresh_token"]).body
    client.refresh(tokens["refresh_token"])
    client.exchange(code)
    machine.act()
    other = person.tokens(client)
    client.post("/oauth/revoke", token=other["access_token"])
    person.browser.post("/oauth/grants", {"client_id": client.client_id})
    noted = list(AuditEvent.objects.order_by("id").values_list("event", "user_id"))
    own = [event for event, user in noted if user == person.user.pk]
    assert own == [
        "login",
        "oauth_code.issued",
        "oauth_token.issued",
        "oauth_token.refreshed",
        "oauth_refresh_token.reused",
        "oauth_code.reused",
        "oauth_code.issued",
        "oauth_token.issued",
        "oauth_token.revoked",
        "oauth_grant.ended",
    ]
    assert "by" not in AuditEvent.objects.get(event="oauth_grant.ended").facts
    assert ("oauth_token.issued", machine.row.owner_id) in noted
    text = repr(list(AuditEvent.objects.values()))
    assert CALLBACK not in text
    for secret in (code, client.secret, *tokens.values(), *second.values()):
        assert secret == "Bearer" or not isinstance(secret, str) or " " in secret or secret not in text
