"""Access tokens at the resources: their user, their scopes, and when they are refused."""

from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import get_access_token_model

from accounts.models import Application
from tests.accounts.oauth.actors import bearer


@pytest.fixture
def token(person, client):
    return person.tokens(client)["access_token"]


def refused(token):
    answer = bearer(token).get("/api/v1/users")
    if answer.status == 200:
        return False
    assert (answer.status, answer.code) == (401, "INVALID_TOKEN")
    assert answer.headers["WWW-Authenticate"]
    return True


@pytest.mark.parametrize("way", ["?access_token={}", "?api_key={}"])
def test_token_in_the_query_is_no_credential(token, nobody, way):
    assert nobody.get("/users" + way.format(token)).status == 401


def test_token_in_a_form_is_no_credential(token):
    answer = Client().post("/users", {"access_token": token})
    assert answer.status_code in {401, 415}


@pytest.mark.parametrize("made", ["", "none", "x" * 5000, "é", "a b"])
def test_token_that_is_none_is_refused(db, made):
    assert refused(made)


def test_expired_token_is_refused(token):
    get_access_token_model().objects.update(expires=timezone.now())
    assert refused(token)


def test_token_lives_a_quarter_of_an_hour(token):
    left = get_access_token_model().objects.get().expires - timezone.now()
    assert timedelta(minutes=14, seconds=50) < left <= timedelta(minutes=15)


def test_scope_taken_from_the_application_counts_from_the_next_request_on(client, token):
    Application.objects.update(allowed_scopes=["orders:read"])
    assert bearer(token).get("/api/protected").data["scopes"] == ["orders:read"]
    assert bearer(token).get("/users").code == "INSUFFICIENT_SCOPE"


def test_token_signs_in_nowhere(token, person):
    assert authenticate(None, username=person.user.email, password=token) is None
    browser = Client(headers={"Authorization": f"Bearer {token}"})
    assert browser.get("/oauth/grants").status_code == 302
    assert browser.get("/admin/").status_code == 302
