"""Requests that arrive together share their waits, and nothing else."""

from time import monotonic

import pytest
from django.db import connection

from accounts import passwords
from accounts.services import create_api_key
from config.api.principal import SCOPES
from config.api.versions import usage
from config.server import fast_lane
from config.server.fast_lane import MAX_BATCH
from payments.models import Payment
from tests.conftest import PASSWORD, own_session
from tests.server.received import Received, respond_to


def test_requests_that_arrive_together_share_their_waits(sizes, make_user, monkeypatch):
    keys = [create_api_key(make_user(), name="test", scopes=SCOPES) for _ in range(2 * MAX_BATCH)]
    # However long they take in a process that has compiled nothing yet.
    monkeypatch.setattr(fast_lane, "SECONDS_OF_A_BATCH", 10)
    received = respond_to(*(Received(f"/api/v1/users/{row.user_id}", key) for row, key in keys))
    assert [request.body["data"]["id"] for request in received] == [row.user_id for row, _ in keys]
    # For credentials, then for users.
    assert sizes == [MAX_BATCH] * 4


def test_request_of_many_that_is_refused_is_refused_alone(transactional_db, make_user):
    row, key = create_api_key(make_user(), name="test", scopes=SCOPES)
    path = f"/api/v1/users/{row.user_id}"
    requests = respond_to(
        *(Received(path, key), Received(path, "wrong"), Received("/api/v1/users/0", key), Received("/nowhere", key)),
        *(Received("/health/live", ""), Received(path, key)),
    )
    assert [request.status for request in requests] == [200, 401, 404, 404, 200, 200]
    assert len({request.headers["Request-Id"] for request in requests}) == len(requests)


def test_same_key_at_the_same_time_has_one_effect(transactional_db, make_user):
    _, key = create_api_key(make_user(), name="test", scopes=SCOPES)
    same = [Received("/api/v1/payments", key, {"amount": 12.5}, idempotency_key="k") for _ in range(MAX_BATCH)]
    other = Received("/api/v1/payments", key, {"amount": 13}, idempotency_key="k")
    first, *others, refused = respond_to(*same[1:], other)
    assert (first.status, refused.status) == (201, 422)
    assert [(request.status, request.body) for request in others] == [(201, first.body)] * len(others)
    (later,) = respond_to(same[0])
    # What was to be added and was not has no part in the response, nor in its entity tag.
    assert {frozenset(request.headers) for request in others} == {frozenset(later.headers)}
    assert Payment.objects.count() == 1


@pytest.fixture
def short_waits(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '500ms'")
    yield
    connection.close()


@own_session
@pytest.mark.usefixtures("short_waits")
def test_user_that_is_being_removed_is_waited_for_once(make_user, elsewhere, monkeypatch):
    """A foreign key waits for the lock of a removal, in vain after `lock_timeout`."""
    users = [make_user() for _ in range(3)]
    keys = [create_api_key(user, name="test", scopes=SCOPES)[1] for user in users]
    elsewhere.execute("SELECT FROM users_user WHERE id = %s FOR UPDATE", [users[1].pk])
    # It waits for the user, too.
    monkeypatch.setattr(usage.uses, "write", lambda: None)
    began = monotonic()
    received = respond_to(*(Received("/api/v1/orders", key, {"item": "Tea", "qty": 1}) for key in keys))
    assert [request.status for request in received] == [201, 503, 201]
    assert monotonic() - began < 0.9


def test_no_more_passwords_are_checked_than_the_limit(transactional_db, make_user, one_minute, settings, monkeypatch):
    owner, checks = make_user(password=PASSWORD), []
    monkeypatch.setitem(passwords.prove.__kwdefaults__, "check", lambda *_: bool(checks.append(1)))
    body = {"email": owner.email, "password": "wrong"}
    received = respond_to(*(Received("/api/login", body=body) for _ in range(MAX_BATCH)))
    limit = settings.RATE_LIMIT_LOGIN_ACCOUNT
    assert [request.status for request in received] == [401] * limit + [429] * (MAX_BATCH - limit)
    assert len(checks) == limit
