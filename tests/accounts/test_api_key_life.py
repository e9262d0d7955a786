"""API keys as a resource: made, listed, rotated, revoked."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import APIKey
from accounts.services import create_api_key
from config.api.principal import AUDIT_SCOPE, SCOPES
from tests.conftest import PASSWORD, Caller, with_password

FIELDS = {"id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at", "_links"}


@pytest.fixture
def owner(make_user):
    return with_password(make_user(password=PASSWORD))


@pytest.fixture
def made(owner):
    return owner.post("/api-keys", {"name": "laptop"})


def using(key):
    return Caller(headers={"X-API-Key": key})


def test_new_key_is_told_once_and_works(owner, made):
    assert made.status == 201
    assert made.headers["Location"] == f"/api-keys/{made.data['id']}"
    assert made.headers["Cache-Control"] == "no-store"
    assert set(made.data) == {*FIELDS, "key"}
    assert made.data["key"].startswith(made.data["prefix"])
    scopes = [scope for scope in SCOPES if scope != AUDIT_SCOPE]
    assert (made.data["name"], made.data["scopes"], made.data["expires_at"]) == ("laptop", scopes, None)
    assert using(made.data["key"]).get("/api/protected").data["credential"]["kind"] == "api_key"
    read = owner.get(f"/api-keys/{made.data['id']}")
    assert set(read.data) == FIELDS
    assert "key" not in owner.get("/api-keys").data[0]


@pytest.mark.parametrize("fields", ["key", "key,prefix", "prefix,key,id"])
@pytest.mark.parametrize("prefix", ["", "/api/v2"])
def test_key_cannot_be_chosen_where_it_is_not_told(owner, made, prefix, fields):
    others = "id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at"
    for path in ("/api-keys", f"/api-keys/{made.data['id']}", "/api-keys?cursor="):
        answer = owner.get(f"{prefix}{path}{'&' if '?' in path else '?'}fields={fields}")
        assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
        assert answer.error["details"] == [{"field": "fields", "message": f"Unknown: key. Available: {others}."}]


def test_key_can_be_chosen_where_it_is_told(owner):
    made = owner.post("/api-keys?fields=key,name", {"name": "laptop"})
    assert (made.status, set(made.data)) == (201, {"key", "name"})
    assert using(made.data["key"]).get("/api/protected").status == 200


def test_scopes_and_end_are_those_given(owner):
    made = owner.post(
        "/api-keys", {"name": "n", "scopes": ["posts:read", "users:read"], "expires_at": "2099-01-01T00:00:00+01:00"}
    )
    assert made.data["scopes"] == ["users:read", "posts:read"]
    assert made.data["expires_at"] == "2098-12-31T23:00:00Z"
    assert using(made.data["key"]).get("/api/protected").data["scopes"] == ["posts:read", "users:read"]


def test_wrong_body_names_its_fields(owner):
    for body, fields in [
        ({}, {"name"}),
        ({"name": ""}, {"name"}),
        ({"name": "x" * 101}, {"name"}),
        ({"name": "n", "scopes": []}, {"scopes"}),
        ({"name": "n", "scopes": ["users:fly"]}, {"scopes"}),
        ({"name": "n", "scopes": ["users:read", "users:read"]}, {"scopes"}),
        ({"name": "n", "scopes": "users:read"}, {"scopes"}),
        ({"name": "n", "scopes": [["users:read"]]}, {"scopes"}),
        ({"name": "n", "scopes": None}, {"scopes"}),
        ({"name": "n", "expires_at": "2001-01-01T00:00:00Z"}, {"expires_at"}),
        ({"name": "n", "expires_at": "2099-01-01"}, {"expires_at"}),
        ({"name": "\u3164\u200b"}, {"name"}),
        ({"name": "n", "expires_at": "2099-13-01T00:00:00Z"}, {"expires_at"}),
        ({"name": "n", "expires_at": "2099-01-01T00:00:00"}, {"expires_at"}),
        ({"name": "n", "expires_at": 4070908800}, {"expires_at"}),
        ({"name": 5, "scopes": ["x"], "expires_at": "soon"}, {"name", "scopes", "expires_at"}),
    ]:
        answer = owner.post("/api-keys", body)
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", fields)
        assert not APIKey.objects.exists()


def test_revoked_key_is_refused_at_once_and_stays_readable(owner, made):
    path = f"/api-keys/{made.data['id']}"
    assert owner.delete(path).status == 204
    assert using(made.data["key"]).get("/api/protected").status == 401
    revoked_at = owner.get(path).data["revoked_at"]
    assert revoked_at
    assert owner.delete(path).status == 204
    assert owner.get(path).data["revoked_at"] == revoked_at


def test_rotation_gives_a_successor_and_lets_the_old_key_go_on_for_the_overlap(owner, made):
    rotated = owner.post(f"/api-keys/{made.data['id']}/rotations", {"overlap_seconds": 60})
    assert rotated.status == 201
    assert rotated.headers["Location"] == f"/api-keys/{rotated.data['id']}"
    assert set(rotated.data) == {*FIELDS, "key"}
    assert rotated.data["id"] != made.data["id"]
    assert {name: rotated.data[name] for name in ("name", "scopes", "expires_at")} == {
        name: made.data[name] for name in ("name", "scopes", "expires_at")
    }
    assert using(rotated.data["key"]).get("/api/protected").status == 200
    assert using(made.data["key"]).get("/api/protected").status == 200
    old = APIKey.objects.get(pk=made.data["id"])
    assert timedelta(seconds=50) < old.expires_at - timezone.now() <= timedelta(seconds=60)


def test_rotation_without_overlap_ends_the_old_key(owner, made):
    assert owner.post(f"/api-keys/{made.data['id']}/rotations", {"overlap_seconds": 0}).status == 201
    assert using(made.data["key"]).get("/api/protected").status == 401


def test_overlap_is_a_day_by_default_and_never_lengthens_a_key(owner, made):
    owner.post(f"/api-keys/{made.data['id']}/rotations", {})
    lasting = APIKey.objects.get(pk=made.data["id"]).expires_at - timezone.now()
    assert timedelta(hours=23) < lasting <= timedelta(days=1)
    soon = timezone.now() + timedelta(minutes=5)
    short, _ = create_api_key(owner.user, name="short", expires_at=soon)
    assert owner.post(f"/api-keys/{short.pk}/rotations", {}).data["expires_at"]
    short.refresh_from_db()
    assert short.expires_at == soon


@pytest.mark.parametrize("overlap", [-1, 604_801, 1.5, "60", None, True])
def test_overlap_that_is_none_is_refused_by_name(owner, made, overlap):
    answer = owner.post(f"/api-keys/{made.data['id']}/rotations", {"overlap_seconds": overlap})
    assert (answer.status, answer.fields) == (400, {"overlap_seconds"})


@pytest.mark.parametrize(
    "end",
    [
        {"revoked_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"expires_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"rotated_at": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_key_that_has_ended_or_has_a_successor_is_not_rotated(owner, made, end):
    APIKey.objects.filter(pk=made.data["id"]).update(**end)
    answer = owner.post(f"/api-keys/{made.data['id']}/rotations", {})
    assert (answer.status, answer.code) == (409, "CONFLICT")
    assert APIKey.objects.count() == 1


def test_one_of_several_rotations_at_once_wins(at_once, make_user):
    owner = with_password(make_user(password=PASSWORD))
    row, _ = create_api_key(owner.user, name="n")
    answers = at_once([partial(owner.post, f"/api-keys/{row.pk}/rotations", {})] * 4)
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
