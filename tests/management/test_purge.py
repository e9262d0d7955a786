"""manage.py purge: expired rows are deleted, those still in use stay, and traffic is not blocked."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from io import StringIO
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from accounts.models import LoginSession, Session
from accounts.services import create_api_key
from config.management.commands import purge
from config.models import (
    AuditEvent,
    Counter,
    IdempotencyRecord,
    OutboxEntry,
    ReadPosition,
    RowCount,
    VersionUse,
    WebhookDelivery,
)
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import PASSWORD
from tests.events.webhooks.rows import make_webhook
from users.models import User

AccessToken, Grant, RefreshToken = get_access_token_model(), get_grant_model(), get_refresh_token_model()
KINDS = {
    "login sessions": LoginSession,
    "browser sessions": Session,
    "OAuth codes": Grant,
    "OAuth refresh tokens": RefreshToken,
    "OAuth access tokens": AccessToken,
    "counters": Counter,
    "idempotency keys": IdempotencyRecord,
    "audit events": AuditEvent,
    "outbox entries": OutboxEntry,
    "webhook deliveries": WebhookDelivery,
    "read positions": ReadPosition,
    "uses of versions": VersionUse,
}
NOTHING = dict.fromkeys([*KINDS, "events", "removed users"], 0)
SECOND = timedelta(seconds=1)
# From the end of an access token to that of the refresh token that was given with it.
REFRESHABLE = timedelta(days=14, minutes=-15)
numbers = count(1)


def run(*arguments: str) -> dict[str, int]:
    output = StringIO()
    call_command("purge", *arguments, stdout=output)
    return {name: int(number) for name, number in re.findall(r"^(.+): ([0-9]+)$", output.getvalue(), re.MULTILINE)}


@pytest.fixture
def user(make_user):
    return make_user(password=PASSWORD)


def login_session(user: User, expires_at: Any) -> LoginSession:
    digests = {"password_digest": "", "refresh_digest": b""}
    return LoginSession.objects.create(user=user, expires_at=expires_at, access_id="", **digests)


def browser_session(_: User, expires_at: Any) -> Session:
    key = f"key{next(numbers)}"
    return Session.objects.create(session_key=key, public_id=uuid4(), session_data="", expire_date=expires_at)


def code(user: User, expires_at: Any) -> Any:
    application = register().row
    return Grant.objects.create(user=user, application=application, code=str(next(numbers)), expires=expires_at)


def access_token(user: User, expires_at: Any) -> Any:
    return AccessToken.objects.create(
        user=user, application=register().row, token=secrets.token_hex(), expires=expires_at, scope=""
    )


def refresh_token(user: User, access: Any, family: Any = None, **columns: Any) -> Any:
    return RefreshToken.objects.create(
        user=user,
        application=register().row,
        token=secrets.token_hex(),
        access_token=access,
        token_family=family or uuid4(),
        **columns,
    )


def counter(_: User, over_at: Any) -> Counter:
    return Counter.objects.create(key=f"key{next(numbers)}", window=over_at - timedelta(minutes=1), count=1)


def audit_event(user: User, over_at: Any) -> AuditEvent:
    event = AuditEvent.objects.create(event="login", user=user)
    AuditEvent.objects.filter(pk=event.pk).update(at=over_at - timedelta(days=365))
    return event


def idempotency_record(user: User, over_at: Any) -> IdempotencyRecord:
    columns = {"operation": "POST /payments", "key": str(next(numbers)), "fingerprint": b"", "status": 201}
    return IdempotencyRecord.objects.create(user=user, created_at=over_at - timedelta(days=30), **columns)


def outbox_entry(user: User, over_at: Any) -> OutboxEntry:
    return OutboxEntry.objects.create(
        kind="invitation", user=user, status="sent", created_at=over_at - timedelta(days=7)
    )


def webhook_delivery(user: User, over_at: Any) -> WebhookDelivery:
    created_at = over_at - timedelta(days=30)
    columns = {"type": "order.created", "status": "delivered", "created_at": created_at}
    return WebhookDelivery.objects.create(webhook=make_webhook(user), **columns)


def read_position(user: User, over_at: Any) -> ReadPosition:
    waited_at = over_at - timedelta(days=1)
    columns = {"replica": "db2:5432", "timeline": "00000001", "position": 1}
    return ReadPosition.objects.create(user_id=next(numbers), waited_at=waited_at, **columns)


def version_use(user: User, over_at: Any) -> VersionUse:
    # Days are kept whole: one that ends just after its time is not over.
    day = (over_at - timedelta(days=366)).date()
    if over_at > timezone.now() - purge.MARGIN:
        day += timedelta(days=1)
    columns = {"version": 1, "kind": "jwt", "credential": str(next(numbers))}
    return VersionUse.objects.create(user=user, day=day, count=1, **columns)


MAKERS = {
    "login sessions": login_session,
    "browser sessions": browser_session,
    "OAuth codes": code,
    "OAuth access tokens": access_token,
    "counters": counter,
    "idempotency keys": idempotency_record,
    "audit events": audit_event,
    "outbox entries": outbox_entry,
    "webhook deliveries": webhook_delivery,
    "read positions": read_position,
    "uses of versions": version_use,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_rows_past_their_end_go_and_others_stay(user, kind):
    now = timezone.now()
    past = [MAKERS[kind](user, now - purge.MARGIN - ago).pk for ago in (SECOND, timedelta(days=400))]
    left = [MAKERS[kind](user, now - purge.MARGIN + ahead).pk for ahead in (20 * SECOND, timedelta(days=1))]
    assert run("--dry-run") == NOTHING | {kind: 2}
    assert KINDS[kind].objects.filter(pk__in=past).count() == 2
    assert run() == NOTHING | {kind: 2}
    assert set(KINDS[kind].objects.filter(pk__in=past + left).values_list("pk", flat=True)) == set(left)
    assert run() == NOTHING


def test_every_kind_is_told_in_its_line_also_of_an_empty_database(db):
    assert run() == NOTHING
    assert list(run("--dry-run")) == list(NOTHING)


def test_expired_and_revoked_api_keys_stay(user):
    long_ago = timezone.now() - timedelta(days=900)
    create_api_key(user, name="expired", expires_at=long_ago)
    create_api_key(user, name="revoked")
    user.api_keys.update(revoked_at=long_ago)
    assert run() == NOTHING
    assert user.api_keys.count() == 2


def test_expired_access_token_stays_as_long_as_its_refresh_token_lives(user):
    now = timezone.now()
    living = access_token(user, now - REFRESHABLE + 20 * SECOND)
    dead = access_token(user, now - REFRESHABLE - purge.MARGIN - SECOND)
    stays, goes = refresh_token(user, living), refresh_token(user, dead)
    expected = NOTHING | {"OAuth refresh tokens": 1, "OAuth access tokens": 1}
    assert run("--dry-run") == expected
    assert run() == expected
    assert list(RefreshToken.objects.all()) == [stays] != [goes]
    assert list(AccessToken.objects.all()) == [living]


def test_used_refresh_tokens_stay_as_long_as_their_family_lives(user):
    now, long_ago = timezone.now(), timezone.now() - timedelta(days=100)
    living, over = uuid4(), uuid4()
    used = [refresh_token(user, None, living, revoked=long_ago), refresh_token(user, None, over, revoked=long_ago)]
    present = refresh_token(user, access_token(user, now + timedelta(minutes=5)), living)
    refresh_token(user, None, over, revoked=now)
    assert run()["OAuth refresh tokens"] == 2
    assert set(RefreshToken.objects.all()) == {used[0], present}


def test_reuse_is_still_detected_after_a_purge(user):
    client, person = register(), Person(user)
    first = person.tokens(client)
    second = client.refresh(first["refresh_token"]).body
    RefreshToken.objects.exclude(revoked=None).update(revoked=timezone.now() - timedelta(days=300))
    assert run() == NOTHING
    assert bearer(second["access_token"]).get("/api/protected").status == 200
    assert client.refresh(first["refresh_token"]).body["error"] == "invalid_grant"
    assert bearer(second["access_token"]).get("/api/protected").status == 401


def test_more_rows_than_a_batch_go_in_several(user, monkeypatch):
    monkeypatch.setattr(purge, "BATCH_SIZE", 4)
    past = timezone.now() - timedelta(days=1)
    for _ in range(10):
        browser_session(user, past)
        refresh_token(user, access_token(user, past - REFRESHABLE))
    assert run() == NOTHING | {"browser sessions": 10, "OAuth refresh tokens": 10, "OAuth access tokens": 10}


def test_row_that_somebody_holds_is_left_to_the_next_purge(elsewhere, user):
    past = timezone.now() - timedelta(days=1)
    held, free = login_session(user, past), login_session(user, past)
    elsewhere.execute("SELECT 1 FROM accounts_loginsession WHERE id = %s FOR UPDATE", [held.pk])
    assert run()["login sessions"] == 1
    assert list(LoginSession.objects.all()) == [held] != [free]
    elsewhere.rollback()
    assert run()["login sessions"] == 1


def test_counts_behind_the_totals_are_folded_unless_it_only_counts(user):
    row = RowCount.objects.filter(relation="users_user")
    row.update(slot=3)
    run("--dry-run")
    assert set(row.values_list("slot", flat=True)) == {3}
    run()
    assert set(row.values_list("slot", flat=True)) == {0}


def test_retention_of_the_audit_trail_is_a_setting(user, settings):
    AuditEvent.objects.all().delete()
    event = AuditEvent.objects.create(event="login", user=user)
    AuditEvent.objects.filter(pk=event.pk).update(at=timezone.now() - timedelta(days=8))
    assert run()["audit events"] == 0
    settings.AUDIT_RETENTION_DAYS = 7
    assert run()["audit events"] == 1
