"""Refresh tokens: rotation at each use, and the end of the family at reuse."""

from datetime import timedelta

import pytest
from django.utils import timezone
from oauth2_provider.models import get_access_token_model

from accounts.models import Application
from tests.accounts.oauth.actors import bearer


@pytest.fixture(params=["client", "public"])
def application(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def tokens(person, application):
    return person.tokens(application)


def test_refresh_gives_a_new_pair_and_ends_the_old_one(application, tokens):
    answer = application.refresh(tokens["refresh_token"])
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body["expires_in"] == 900
    assert answer.body["scope"] == tokens["scope"]
    assert answer.body["access_token"] != tokens["access_token"]
    assert answer.body["refresh_token"] != tokens["refresh_token"]
    assert bearer(answer.body["access_token"]).get("/api/protected").status == 200
    assert bearer(tokens["access_token"]).get("/api/protected").status == 401


def test_reused_refresh_token_kills_its_family_and_no_other(person, application, tokens):
    second = application.refresh(tokens["refresh_token"]).body
    third = application.refresh(second["refresh_token"]).body
    other = person.tokens(application)
    answer = application.refresh(tokens["refresh_token"])
    assert (answer.status, answer.body["error"]) == (400, "invalid_grant")
    assert bearer(third["access_token"]).get("/api/protected").status == 401
    assert application.refresh(third["refresh_token"]).body["error"] == "invalid_grant"
    assert bearer(other["access_token"]).get("/api/protected").status == 200
    assert application.refresh(other["refresh_token"]).status == 200


def test_refresh_token_of_another_client_is_refused_and_stays_good(person, client, public):
    token = person.tokens(client)["refresh_token"]
    assert public.refresh(token).body["error"] == "invalid_grant"
    assert client.refresh(token).status == 200


@pytest.mark.parametrize(("age", "status"), [(timedelta(days=13, hours=23), 200), (timedelta(days=14), 400)])
def test_refresh_token_is_good_for_14_days(application, tokens, age, status):
    get_access_token_model().objects.update(expires=timezone.now() + timedelta(minutes=15) - age)
    assert application.refresh(tokens["refresh_token"]).status == status


def test_scope_may_be_narrowed_and_not_widened(application, tokens):
    wider = application.refresh(tokens["refresh_token"], scope="users:read orders:write")
    assert (wider.status, wider.body["error"]) == (400, "invalid_scope")
    assert "granted" in wider.body["error_description"]
    assert application.refresh(tokens["refresh_token"], scope="users:read").body["scope"] == "users:read"


def test_scope_taken_from_the_application_is_not_refreshed(application, tokens):
    Application.objects.update(allowed_scopes=["orders:read"])
    assert application.refresh(tokens["refresh_token"]).body["scope"] == "orders:read"


def test_refresh_without_any_scope_left_is_invalid_scope(application, tokens):
    Application.objects.update(allowed_scopes=[])
    refused = application.refresh(tokens["refresh_token"])
    assert (refused.body["error"], bool(refused.body["error_description"])) == ("invalid_scope", True)


@pytest.mark.parametrize("body", [{"status": "inactive"}, None])
def test_refresh_of_somebody_deactivated_or_removed_is_refused(person, application, tokens, admin, body):
    admin("PATCH" if body else "DELETE", f"/users/{person.user.pk}", body)
    assert application.refresh(tokens["refresh_token"]).body["error"] == "invalid_grant"


@pytest.mark.parametrize("token", ["none", "x" * 100_000, "é", "a\0b"])
def test_refresh_token_that_is_none_is_refused(application, token):
    answer = application.refresh(token)
    assert answer.status == 400
    assert answer.body["error"] in {"invalid_grant", "invalid_request"}
