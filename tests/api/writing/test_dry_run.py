"""What a dry run answers, and that what it touches on the way is left as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Caller, with_password

pytestmark = pytest.mark.django_db


def test_what_would_have_been_answered(admin: Caller) -> None:
    body = {"name": "New", "email": "new@example.com"}
    tried = admin.post("/api/v2/users?dry_run=true&fields=name,role", body)
    assert tried.body == {"success": True, "data": {"name": "New", "role": "user"}}
    bare = admin.post("/api/v2/users?dry_run=true&envelope=false&fields=email", body)
    assert bare.body == {"email": "new@example.com"}
    path = f"/api/v2/users/{admin.post('/api/v2/users', body).data['id']}"
    changed = admin.patch(f"{path}?dry_run=true&fields=id,name", {"name": "Other"})
    assert changed.data["name"] == "Other"
    assert admin.get(path).data["name"] == "New"
    gone = admin.delete(f"{path}?dry_run=true")
    assert (gone.status, gone.body) == (200, {"success": True, "data": None})
    bare = admin.delete(f"{path}?dry_run=true&envelope=false")
    assert (bare.status, bare.response.content, bare.headers["Content-Type"]) == (200, b"null", "application/json")
    assert admin.get(path).status == 200
    assert admin.delete(path).status == 204


def test_constraints_and_preconditions_are_checked(admin: Caller, user: Caller) -> None:
    taken = admin.post("/api/v2/users?dry_run=true", {"name": "New", "email": user.user.email})
    assert (taken.status, taken.code, taken.fields) == (409, "CONFLICT", {"email"})
    wrong = admin.post("/api/v2/orders?dry_run=true", {"item": "Tea", "qty": 0, "user_id": 10**9})
    assert (wrong.status, wrong.fields) == (400, {"qty", "user_id"})
    path = f"/api/v2/users/{user.user.pk}"
    tag = admin.get(path).headers["ETag"]
    for method, body in (("PATCH", {"name": "New"}), ("DELETE", None)):
        stale = admin(method, f"{path}?dry_run=true", body, if_match='"x"')
        assert (stale.status, stale.code) == (412, "PRECONDITION_FAILED")
        assert admin(method, f"{path}?dry_run=true", body, if_match=tag).status == 200
    assert admin.get(path).headers["ETag"] == tag
    last = admin.delete(f"/api/v2/users/{admin.user.pk}?dry_run=true")
    assert (last.status, last.code) == (409, "CONFLICT")


def test_keys_state_is_checked_and_no_key_is_used(admin: Caller) -> None:
    body, key = {"amount": "5.00"}, {"Idempotency-Key": "one"}
    assert admin.post("/api/v2/payments?dry_run=true", body).code == "IDEMPOTENCY_KEY_REQUIRED"
    first = admin.post("/api/v2/payments?dry_run=true", body, **key)
    assert (first.status, first.data["amount"]) == (200, "5.00")
    assert "Idempotent-Replayed" not in first.headers
    other = admin.post("/api/v2/payments", {"amount": "6.00"}, **key)
    assert other.status == 201
    assert "Idempotent-Replayed" not in other.headers
    reused = admin.post("/api/v2/payments?dry_run=true", body, **key)
    assert (reused.status, reused.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    again = admin.post("/api/v2/payments?dry_run=true", {"amount": "6.00"}, **key)
    assert (again.status, again.response.content) == (200, other.response.content)
    assert (again.headers["Dry-Run"], again.headers["Idempotent-Replayed"]) == ("true", "true")


@pytest.mark.django_db(transaction=True)
def test_nothing_is_logged_of_what_did_not_happen(admin: Caller, make_user: Any, told: Any) -> None:
    password = with_password(make_user("user", password="four plain words here"))
    assert password.post("/api/v2/api-keys?dry_run=true", {"name": "New"}).status == 200
    assert not [line for line in told() if line.get("message", "").startswith("api_key")]
    assert password.get("/api/v2/api-keys").data == []
    path = f"/api/v2/users/{password.user.pk}"
    assert admin.delete(f"{path}?dry_run=true").status == 200
    assert (admin.get(path).status, admin.delete(path).status, admin.get(path).status) == (200, 204, 404)
