"""The authorization code grant: from the request for consent to the first tokens."""

from datetime import timedelta

import pytest
from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from tests.accounts.oauth.actors import CALLBACK, CHALLENGE, VERIFIER, Person, bearer, register, returned

ISSUER = "https://api.example.com"
NO_PKCE = {"code_challenge": None, "code_challenge_method": None}


@pytest.mark.parametrize("kind", ["client", "public"])
def test_consent_gives_a_code_and_the_code_gives_tokens(person, kind, request):
    application = request.getfixturevalue(kind)
    back = person.decide(application)
    assert back.keys() == {"code", "state", "iss"}
    assert (back["state"], back["iss"]) == ("s-1", ISSUER)
    answer = application.exchange(back["code"])
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body.keys() == {"access_token", "refresh_token", "token_type", "expires_in", "scope"}
    assert (answer.body["token_type"], answer.body["expires_in"]) == ("Bearer", 900)
    assert answer.body["scope"] == "users:read orders:read"
    caller = bearer(answer.body["access_token"]).get("/api/protected").data
    assert caller["user"]["id"] == person.user.pk
    assert caller["credential"]["kind"] == "oauth"
    assert caller["credential"]["expires_at"].endswith("Z")
    assert caller["scopes"] == ["orders:read", "users:read"]


def test_denied_consent_tells_the_client_and_gives_nothing(person, client):
    back = person.decide(client, "deny")
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "s-1", ISSUER)
    assert not get_grant_model().objects.exists()


def test_nothing_secret_is_kept_in_clear(person, client):
    code = person.code(client)
    assert code not in get_grant_model().objects.values_list("code", flat=True)
    given = client.exchange(code).body
    kept = [*get_access_token_model().objects.values(), *get_refresh_token_model().objects.values()]
    text = repr(kept)
    assert given["access_token"] not in text
    assert given["refresh_token"] not in text
    assert client.secret not in repr(vars(client.row))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_wrong_request_is_told_to_the_client_with_state_and_issuer(person, client, method):
    for changes, error in [
        ({"scope": None}, "invalid_scope"),
        ({"scope": ""}, "invalid_scope"),
        ({"scope": "   "}, "invalid_scope"),
        ({"scope": "users:read payments:read"}, "invalid_scope"),
        ({"scope": "users:fly"}, "invalid_scope"),
        ({"response_type": "token"}, "unauthorized_client unsupported_response_type"),
        ({"response_type": "code token"}, "unauthorized_client unsupported_response_type"),
        ({"response_type": "none"}, "unauthorized_client unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "é" * 43}, "invalid_request"),
        ({"code_challenge": "x" * 5000}, "invalid_request"),
    ]:
        address = Person.address(client, **changes)
        answer = (
            person.browser.get(address) if method == "GET" else person.browser.post(address, {"decision": "approve"})
        )
        back = returned(answer)
        assert back["error"] in error.split()
        assert error != "invalid_scope" or "allowed" in back["error_description"]
        assert (back["state"], back["iss"]) == ("s-1", ISSUER)


def test_public_client_needs_pkce(person, public):
    assert returned(person.look(public, **NO_PKCE))["error"] == "invalid_request"


def test_confidential_client_may_do_without_pkce(person, client):
    assert client.exchange(person.code(client, **NO_PKCE), code_verifier=None).status == 200


def test_verifier_without_a_challenge_is_refused(person, client):
    answer = client.exchange(person.code(client, **NO_PKCE))
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("kind", ["client", "public"])
@pytest.mark.parametrize("verifier", [None, "", "x" * 43, CHALLENGE, "é" * 43, VERIFIER + "="])
def test_challenge_is_enforced_of_every_client_that_sent_one(person, kind, verifier, request):
    application = request.getfixturevalue(kind)
    code = person.code(application)
    answer = application.exchange(code, code_verifier=verifier)
    assert answer.status == 400
    assert answer.body["error"] in {"invalid_grant", "invalid_request"}
    assert application.exchange(code).status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_untrusted_client_or_redirect_is_told_to_the_person_alone(person, client, method):
    for changes in [
        {"client_id": "nobody"},
        {"client_id": None},
        {"client_id": "a\0b"},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": CALLBACK + "?a=1"},
        {"redirect_uri": CALLBACK.upper()},
        {"redirect_uri": CALLBACK + "#f"},
        {"redirect_uri": "http://client.example/callback"},
        {"redirect_uri": "https://client.example:443/callback"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "//evil.example"},
        {"state": "a\0b"},
    ]:
        address = Person.address(client, **changes)
        answer = person.browser.get(address) if method == "GET" else person.browser.post(address, {"decision": "deny"})
        assert answer.status_code == 400
        assert answer["Content-Type"].startswith("text/html")
        assert "Location" not in answer.headers
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("query", ["client_id=%ZZ", "&&=&", "client_id", "client_id=a&client_id=b", "%FF=%FF", ""])
def test_unreadable_request_is_400(person, query):
    assert person.browser.get(f"/oauth/authorize?{query}").status_code == 400


def test_redirect_may_be_left_out_where_there_is_one(person, client):
    code = person.code(client, redirect_uri=None)
    assert client.exchange(code, redirect_uri=None).status == 200
    # It may be told all the same.
    assert client.exchange(person.code(client, redirect_uri=None)).status == 200
    other = client.exchange(person.code(client, redirect_uri=None), redirect_uri="https://client.example/other")
    assert (other.status, other.body["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("kind", ["client", "public"])
def test_redirect_of_the_request_may_not_be_left_out_of_the_exchange(person, request, kind, missing):
    client = request.getfixturevalue(kind)
    code = person.code(client)
    answer = client.exchange(code, redirect_uri=missing)
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")
    assert client.exchange(code).status == 200


def test_redirect_of_the_exchange_must_be_that_of_the_request(person, make_user):
    other = "https://client.example/other"
    client = register(redirect_uris=f"{CALLBACK} {other}")
    code = person.code(client)
    answer = client.exchange(code, redirect_uri=other)
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")


def test_http_on_loopback_is_a_redirect_while_debugging_only(person, settings):
    loopback = "http://127.0.0.1:7000/callback"
    client = register(redirect_uris=loopback)
    assert person.look(client, redirect_uri=loopback).status_code == 400
    settings.DEBUG = True
    assert person.look(client, redirect_uri=loopback).status_code == 200


@pytest.mark.parametrize(
    ("registered", "asked", "is_taken"),
    [
        ("http://127.0.0.1:7000/callback", "http://127.0.0.1:51004/callback", True),
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback", True),
        ("http://[::1]:7000/callback", "http://[::1]:51004/callback", True),
        ("http://127.0.0.1:7000/callback", "http://127.0.0.1:51004/other", False),
        ("http://127.0.0.1:7000/callback", "http://127.0.0.1:51004/callback?more=1", False),
        ("http://127.0.0.1:7000/callback", "http://[::1]:7000/callback", False),
        ("http://127.0.0.1:7000/callback", "http://user@127.0.0.1:51004/callback", False),
        ("http://127.0.0.1:7000/callback", "https://127.0.0.1:51004/callback", False),
        # A name may be somebody else's (RFC 8252, section 8.3).
        ("http://localhost:7000/callback", "http://localhost:51004/callback", False),
        ("https://client.example/callback", "https://client.example:51004/callback", False),
    ],
)
def test_port_of_loopback_is_chosen_by_the_client(person, settings, registered, asked, is_taken):
    client = register(redirect_uris=registered)
    assert person.look(client, redirect_uri=asked).status_code == 400
    settings.LOCAL = True
    assert person.look(client, redirect_uri=asked).status_code == (200 if is_taken else 400)


def test_code_of_another_client_is_refused_and_stays_good(person, client, public):
    code = person.code(client)
    answer = public.exchange(code)
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")
    assert client.exchange(code).status == 200


@pytest.mark.parametrize("code", ["", "none", "x" * 100_000, "a\0b", "é", "😀"])
def test_code_that_is_none_is_refused(client, code):
    answer = client.exchange(code)
    assert answer.status == 400
    assert answer.body["error"] in {"invalid_grant", "invalid_request"}


def test_code_is_good_for_a_minute(person, client):
    code = person.code(client)
    grant = get_grant_model().objects.get()
    assert timedelta(seconds=58) < grant.expires - timezone.now() <= timedelta(seconds=60)
    get_grant_model().objects.update(expires=timezone.now())
    assert client.exchange(code).body["error"] == "invalid_grant"


def test_replayed_code_kills_what_it_gave(person, client):
    code = person.code(client)
    first = client.exchange(code).body
    second = client.refresh(first["refresh_token"]).body
    other = person.tokens(client)
    answer = client.exchange(code)
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")
    for token in (first, second):
        assert bearer(token["access_token"]).get("/api/protected").status == 401
        assert client.refresh(token["refresh_token"]).status == 400
    assert bearer(other["access_token"]).get("/api/protected").status == 200
    assert client.exchange(code).status == 400


def test_code_of_somebody_deactivated_meanwhile_is_refused(person, client, admin):
    code = person.code(client)
    assert admin.patch(f"/users/{person.user.pk}", {"status": "inactive"}).status == 200
    assert client.exchange(code).body["error"] == "invalid_grant"


def test_extras_that_are_not_offered_are_ignored(person, client):
    extras = {"nonce": "n" * 5000, "resource": "https://other.example", "prompt": "none", "claims": "{}"}
    assert client.exchange(person.code(client, **extras), resource="https://third.example").status == 200
