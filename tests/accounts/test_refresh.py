"""POST /api/token/refresh: a refresh token is used once, and its reuse ends the session."""

import time
from datetime import timedelta

import jwt
import pytest
import time_machine
from django.conf import settings
from django.db.models import F

from accounts.models import LoginSession
from tests.accounts.conftest import log_in, log_out, refresh, refused
from tests.accounts.oauth.actors import Person, bearer, register


def later(seconds):
    """Lets the last rotation have been so many seconds ago."""
    LoginSession.objects.update(rotated_at=F("rotated_at") - timedelta(seconds=seconds))


def works(pair):
    return bearer(pair["access_token"]).get("/api/protected").status == 200


@pytest.mark.parametrize("prefix", ["/api", "/api/v1"])
def test_refresh_token_gives_a_new_pair(nobody, owner, pair, prefix):
    answer = nobody.post(f"{prefix}/token/refresh", {"refresh_token": pair["refresh_token"]})
    assert answer.status == 200
    assert set(answer.data) == {"access_token", "refresh_token", "token_type", "expires_in"}
    assert {answer.data["access_token"], answer.data["refresh_token"]}.isdisjoint(pair.values())
    assert answer.headers["Cache-Control"] == "no-store"
    assert works(answer.data)
    assert bearer(answer.data["access_token"]).get("/api/protected").data["user"]["id"] == owner.pk


def test_old_access_token_works_until_it_expires(pair):
    assert refresh(pair["refresh_token"]).status == 200
    assert works(pair)


def test_used_token_presented_again_later_ends_the_session(pair):
    new = refresh(pair["refresh_token"]).data
    later(11)
    assert refused(refresh(pair["refresh_token"]))
    assert not works(pair)
    assert not works(new)
    assert refused(refresh(new["refresh_token"]))


def test_used_token_presented_again_at_once_is_refused_and_no_more(pair):
    new = refresh(pair["refresh_token"]).data
    for _ in range(3):
        assert refused(refresh(pair["refresh_token"]))
    assert works(new)
    assert refresh(new["refresh_token"]).status == 200


def test_used_token_presented_after_the_new_access_token_ends_the_session(pair):
    new = refresh(pair["refresh_token"]).data
    assert works(new)
    assert refused(refresh(pair["refresh_token"]))
    assert not works(new)
    assert refused(refresh(new["refresh_token"]))


def test_used_token_presented_after_the_new_refresh_token_ends_the_session(pair):
    new = refresh(pair["refresh_token"]).data
    newest = refresh(new["refresh_token"]).data
    assert refused(refresh(pair["refresh_token"]))
    assert not works(newest)


def test_use_of_the_old_access_token_is_no_use_of_the_new_pair(pair):
    new = refresh(pair["refresh_token"]).data
    assert works(pair)
    assert refused(refresh(pair["refresh_token"]))
    assert works(new)


def test_reuse_ends_one_session_and_leaves_the_others(owner, pair):
    another = log_in(owner.email).data
    new = refresh(pair["refresh_token"]).data
    later(11)
    assert refused(refresh(pair["refresh_token"]))
    assert not works(new)
    assert works(another)


@pytest.mark.parametrize("path", ["/api/token/refresh", "/api/logout"])
def test_body_without_a_token_is_400(nobody, path):
    for body in [{}, {"refresh_token": None}, {"refresh_token": 5}, {"refresh_token": ""}, {"refresh_token": ["x"]}]:
        answer = nobody.post(path, body)
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"refresh_token"})


def test_logout_ends_access_and_refresh_tokens(pair):
    answer = log_out(pair["refresh_token"])
    assert (answer.status, answer.response.content) == (204, b"")
    assert answer.headers["Cache-Control"] == "no-store"
    assert not works(pair)
    assert refused(refresh(pair["refresh_token"]))


def test_logout_ends_the_pairs_that_came_of_the_token_too(pair):
    new = refresh(pair["refresh_token"]).data
    assert log_out(pair["refresh_token"]).status == 204
    assert not works(new)
    assert refused(refresh(new["refresh_token"]))


def test_logout_leaves_other_sessions(owner, pair):
    another = log_in(owner.email).data
    assert log_out(pair["refresh_token"]).status == 204
    assert works(another)


def test_logout_with_a_token_of_no_session_is_204_and_ends_nothing(pair):
    claims = jwt.decode(pair["refresh_token"], options={"verify_signature": False})
    for token in ("none", "a.b.c", "x" * 5000, "é.é.é", jwt.encode(claims, "k" * 64, "HS256")):
        assert log_out(token).status == 204
    assert works(pair)


@pytest.mark.parametrize("times", [{"exp": -60}, {"iat": 600}, {"nbf": 600}])
def test_logout_ends_the_session_of_a_token_whatever_its_times(pair, times):
    claims = jwt.decode(pair["refresh_token"], options={"verify_signature": False})
    moved = {name: int(time.time()) + seconds for name, seconds in times.items()}
    key = settings.JWT_SIGNING_KEY
    token = jwt.encode(claims | moved, key, "HS256")
    assert log_out(token).status == 204
    assert not works(pair)


@pytest.mark.parametrize("minutes", [0, 60])
def test_logout_with_an_access_token_is_400_naming_the_field(pair, minutes):
    with time_machine.travel(time.time() + minutes * 60):
        answer = log_out(pair["access_token"])
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"refresh_token"})
    assert works(pair)


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_logout_with_a_token_of_an_application_is_400_naming_the_field(owner, kind):
    granted = Person(owner).tokens(register())
    assert log_out(granted[kind]).fields == {"refresh_token"}
    assert bearer(granted["access_token"]).get("/api/protected").status == 200


def test_logout_needs_no_user_who_may_still_log_in(owner, pair, admin):
    assert admin.patch(f"/users/{owner.pk}", {"status": "inactive"}).status == 200
    assert log_out(pair["refresh_token"]).status == 204
    assert admin.patch(f"/users/{owner.pk}", {"status": "active"}).status == 200
    assert not works(pair)
