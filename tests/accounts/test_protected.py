"""GET /api/protected: who the service takes the caller for."""

from datetime import UTC, datetime

import pytest

from accounts.services import create_api_key
from config.api.principal import SCOPES
from tests.conftest import PASSWORD, Caller, with_key, with_password


@pytest.fixture(params=["user", "support", "admin"])
def person(request, make_user):
    return make_user(request.param, name="Ann Lee", password=PASSWORD)


@pytest.mark.parametrize("prefix", ["/api", "/api/v1"])
def test_key_is_told_with_its_user_and_scopes(person, prefix):
    answer = with_key(person).get(f"{prefix}/protected")
    assert answer.status == 200
    scopes = answer.data.pop("scopes")
    assert sorted(scopes) == sorted(SCOPES)
    assert answer.body == {
        "success": True,
        "data": {
            "user": {"id": person.pk, "name": "Ann Lee", "email": person.email, "role": person.role},
            "credential": {"kind": "api_key", "expires_at": None},
        },
    }


def test_basic_has_all_scopes_and_no_end(person):
    data = with_password(person).get("/api/protected").data
    assert data["credential"] == {"kind": "basic", "expires_at": None}
    assert sorted(data["scopes"]) == sorted(SCOPES)
    assert data["user"]["id"] == person.pk


@pytest.mark.parametrize("scopes", [{"posts:read"}, {"orders:write", "payments:read"}])
def test_no_scope_is_needed_and_those_of_the_key_are_told(make_user, scopes):
    answer = with_key(make_user(), scopes).get("/api/protected")
    assert answer.status == 200
    assert sorted(answer.data["scopes"]) == sorted(scopes)


def test_end_of_the_key_is_a_time_in_utc(make_user):
    end = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
    key = create_api_key(make_user(), name="test", expires_at=end)[1]
    told = Caller(headers={"X-API-Key": key}).get("/api/protected").data["credential"]["expires_at"]
    assert told == "2099-01-02T03:04:05Z"
