"""The deliveries to webhooks: written from the events, taken to be sent, and recorded afterwards.

One process at a time writes and takes, under an advisory lock, for as long as a few statements take. What is taken is
leased: if the process is killed, others take it over when the lease runs out. So each event is written exactly once
for a webhook, and sent at least once.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from config import audit
from config.events.webhooks.messages import Message, build_message
from config.events.webhooks.outcomes import GONE, MAX_ERROR_LENGTH, SECONDS_OF_AN_ATTEMPT, Outcome
from config.http.json import to_json
from config.models import (
    DeliveryStatus,
    Event,
    EventEpoch,
    Webhook,
    WebhookDelivery,
    WebhookProgress,
    WebhookStatus,
)
from config.models.events import PUBLIC, PUBLIC_SCOPE, SCOPES
from config.postgresql.transactions import run_in_transaction, try_advisory_lock

# Longer than an attempt may take, with what comes before and after it.
LEASE = timedelta(seconds=SECONDS_OF_AN_ATTEMPT + 5)
FIRST_RETRY = timedelta(seconds=5)
MAX_RETRY = timedelta(hours=6)
# After this time a delivery has failed, and an endpoint without any success is disabled.
GIVE_UP_AFTER = timedelta(days=3)
MAX_EVENTS = 500
# Taken at once, and sent within a moment.
MAX_TAKEN = 100
# The maximum that waits for an endpoint whose events are sent again.
MAX_REPLAYED = 1_000
_LOCK = 0x7765_6268

_OWNER = """
JOIN {users} AS owner ON owner.id = webhook.user_id AND owner.status = 'active' AND owner.removed_at IS NULL
"""
# Events that the webhook's owner can never see are not written; the others are checked when they are sent. In the order
# of the feed.
_WRITE = """
INSERT INTO config_webhookdelivery (webhook_id, event_id, position, subject_id, type, status, attempts)
SELECT webhook.id, event.id, event.position, event.user_id, event.type, 'pending', '[]'
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::boolean[])
    WITH ORDINALITY AS event (id, position, user_id, type, scope, is_public, number)
JOIN config_webhook AS webhook
    ON webhook.status = 'active' AND event.type = ANY (webhook.types) AND event.scope = ANY (webhook.scopes)
{owner}
WHERE (event.is_public AND '{public}' = ANY (webhook.scopes)
    OR event.user_id = webhook.user_id OR owner.role <> 'user')
    AND (%s::bigint IS NULL OR webhook.id = %s)
ORDER BY event.number
"""
# An endpoint that fails is asked by one request at a time, and after those that answer.
_TAKE = """
UPDATE config_webhookdelivery AS delivery SET is_leased = true, due_at = statement_timestamp() + %s
WHERE id IN (
    SELECT due.id FROM config_webhook AS webhook {owner} CROSS JOIN LATERAL (
        SELECT id, due_at FROM config_webhookdelivery AS due
        WHERE due.webhook_id = webhook.id AND due.status = 'pending' AND due.due_at <= statement_timestamp()
        ORDER BY due.due_at, due.id
        LIMIT greatest(0, CASE WHEN webhook.failing_since IS NULL THEN %s ELSE 1 END - (
            SELECT count(*) FROM config_webhookdelivery AS leased
            WHERE leased.webhook_id = webhook.id AND leased.is_leased AND leased.due_at > statement_timestamp()
        ))
    ) AS due
    WHERE webhook.status = 'active'
        AND (webhook.paused_until IS NULL OR webhook.paused_until <= statement_timestamp())
    ORDER BY webhook.failing_since IS NOT NULL, due.due_at, due.id LIMIT {most}
)
RETURNING delivery.id
"""
_NOTE = """
UPDATE config_webhookdelivery AS delivery
SET status = noted.status, due_at = noted.due_at, is_leased = false, attempts = delivery.attempts || noted.attempt
FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[], %s::jsonb[]) AS noted (id, status, due_at, attempt)
WHERE delivery.id = noted.id AND delivery.status = 'pending'
"""
_COUNT = """
INSERT INTO config_webhookoutcome (label, count) SELECT label, count(*) FROM unnest(%s::text[]) AS label
GROUP BY label ORDER BY label ON CONFLICT (label) DO UPDATE SET count = config_webhookoutcome.count + excluded.count
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A message that was sent, and its outcome."""

    message: Message
    outcome: Outcome

    def choose_next(self) -> datetime:
        """When the next one is due, after a failure. Each call chooses by chance."""
        doubled = FIRST_RETRY * 2 ** min(self.message.attempts, 20)
        wait = min(doubled, MAX_RETRY) * random.uniform(1, 1.25)  # noqa: S311 - no secret
        return timezone.now() + max(wait, self.outcome.retry_after or timedelta(0))


def take() -> Sequence[Message]:
    """Writes what is to be sent of new events, and takes what is due; nothing while another process is at it."""
    return run_in_transaction(_take)


def _take() -> Sequence[Message]:
    # Before the first webhook there is nothing to look for.
    progress = WebhookProgress.objects.first()
    if progress is None or not try_advisory_lock(_LOCK):
        return []
    progress.refresh_from_db()
    epoch = EventEpoch.objects.get().number
    _write_new(progress, epoch)
    for webhook in Webhook.objects.filter(status=WebhookStatus.ACTIVE).exclude(replay_position=None).order_by("id"):
        _write_again(webhook, progress)
    found = _execute(_TAKE, LEASE, settings.WEBHOOK_CONCURRENCY)
    return _build_messages([pk for (pk,) in found], epoch) if found else []


def _execute(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    users = connection.ops.quote_name(get_user_model()._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(sql.format(owner=_OWNER.format(users=users), most=MAX_TAKEN, public=PUBLIC_SCOPE), parameters)
        return cursor.fetchall() if cursor.description else []


def _write_new(progress: WebhookProgress, epoch: UUID) -> None:
    if progress.epoch != epoch:
        # It began with no events.
        progress.epoch, progress.position, progress.event_id = epoch, 0, 0
    events = list(Event.objects.after(progress.position, progress.event_id, MAX_EVENTS))
    if events:
        _write(events)
        progress.position, progress.event_id = events[-1].position, events[-1].pk
        progress.save()


def begin() -> None:
    """Makes the next event the first one that webhooks get; call it before the first webhook exists."""
    if not WebhookProgress.objects.exists():
        last = Event.objects.committed().order_by("-position", "-id").first()
        position, event_id = (last.position, last.pk) if last else (0, 0)
        epoch = EventEpoch.objects.get().number
        WebhookProgress.objects.bulk_create(
            [WebhookProgress(epoch=epoch, position=position, event_id=event_id)], ignore_conflicts=True
        )


def _write_again(webhook: Webhook, progress: WebhookProgress) -> None:
    """Writes some of the events to send to a webhook again, unless enough of them already wait."""
    if webhook.deliveries.filter(status=DeliveryStatus.PENDING)[MAX_REPLAYED:].exists():
        return
    position, event_id = webhook.replay_position or 0, webhook.replay_id or 0
    events = list(Event.objects.after(position, event_id, MAX_EVENTS))
    # Later ones are those that are written anyway.
    events = [event for event in events if (event.position, event.pk) <= (progress.position, progress.event_id)]
    if events:
        _write(events, webhook.pk)
    last = (events[-1].position, events[-1].pk) if len(events) == MAX_EVENTS else (None, None)
    Webhook.objects.filter(pk=webhook.pk).update(replay_position=last[0], replay_id=last[1])


def _write(events: Sequence[Event], webhook_id: int | None = None) -> None:
    columns = (
        [event.pk for event in events],
        [event.position for event in events],
        [event.user_id for event in events],
        [event.type for event in events],
        [SCOPES[event.type] for event in events],
        [event.type in PUBLIC for event in events],
    )
    _execute(_WRITE, *columns, webhook_id, webhook_id)


def _build_messages(ids: Collection[int], epoch: UUID) -> Sequence[Message]:
    """The messages of taken deliveries, in the order of the feed; those that the owner may not see have failed."""
    rows = WebhookDelivery.objects.filter(pk__in=ids).select_related("webhook__user").order_by("id")
    deliveries = list(rows)
    found = Event.objects.filter(
        position__in={row.position for row in deliveries if row.position is not None},
        id__in={row.event_id for row in deliveries if row.event_id is not None},
    )
    events: dict[int | None, Event] = {event.pk: event for event in found}
    built = [(row, build_message(row, events.get(row.event_id), epoch)) for row in deliveries]
    if refused := [row for row, message in built if message is None]:
        error = "The event has expired, or the owner of the webhook may not see it any more."
        outcome = Outcome(timezone.now(), 0, error=error)
        attempts = [_describe(outcome)] * len(refused)
        failed = [DeliveryStatus.FAILED.value] * len(refused)
        _execute(_NOTE, [row.pk for row in refused], failed, [timezone.now()] * len(refused), attempts)
    return [message for _, message in built if message]


def _describe(outcome: Outcome) -> str:
    """An attempt as the API shows it, in JSON."""
    shown = {
        "at": outcome.at,
        "duration_ms": outcome.duration_ms,
        "status": outcome.status,
        "error": outcome.error[:MAX_ERROR_LENGTH],
        "body": outcome.body,
    }
    return to_json(shown).decode()


def note(attempts: Sequence[Attempt]) -> None:
    """Records the outcomes of messages, and when to retry those that failed."""
    if attempts:
        run_in_transaction(lambda: _note(attempts))


def _note(attempts: Sequence[Attempt]) -> None:
    webhooks = Webhook.objects.including_erased()
    succeeded = {each.message.webhook_id for each in attempts if each.outcome.is_success}
    failed = {each.message.webhook_id for each in attempts if not each.outcome.is_success}
    # Before any other lock, for it locks the owners.
    _disable_gone({each.message.webhook_id for each in attempts if each.outcome.status == GONE}, failed - succeeded)
    due = [attempt.choose_next() for attempt in attempts]
    _execute(
        _NOTE,
        [attempt.message.delivery_id for attempt in attempts],
        [_get_status(attempt, due_at).value for attempt, due_at in zip(attempts, due, strict=True)],
        due,
        [_describe(attempt.outcome) for attempt in attempts],
    )
    _execute(_COUNT, [attempt.outcome.label for attempt in attempts])
    webhooks.filter(pk__in=failed, failing_since=None).update(failing_since=timezone.now())
    webhooks.filter(pk__in=succeeded).exclude(failing_since=None).update(failing_since=None)
    for each in attempts:
        if each.outcome.retry_after and not each.outcome.is_success:
            until = timezone.now() + each.outcome.retry_after
            webhooks.filter(pk=each.message.webhook_id).update(paused_until=until)


def _get_status(attempt: Attempt, due_at: datetime) -> DeliveryStatus:
    if attempt.outcome.is_success:
        return DeliveryStatus.DELIVERED
    is_last = due_at > attempt.message.created_at + GIVE_UP_AFTER
    return DeliveryStatus.FAILED if is_last else DeliveryStatus.PENDING


def _disable_gone(gone: Collection[int], failing: Collection[int]) -> None:
    """Disables webhooks whose endpoints want nothing more, and of those that fail those that have done so too long."""
    too_long = Q(pk__in=failing, failing_since__lte=timezone.now() - GIVE_UP_AFTER)
    active = Webhook.objects.filter(Q(pk__in=gone) | too_long, status=WebhookStatus.ACTIVE)
    owners = {webhook.user_id for webhook in active}
    if not owners:
        return
    get_user_model()._default_manager.lock_all_key_share(owners)
    for webhook in active.order_by("id").select_related("user").select_for_update(of=("self",), no_key=True):
        too_late = f"No request succeeded for {GIVE_UP_AFTER.days} days."
        reason = "The endpoint answered 410 Gone." if webhook.pk in gone else too_late
        webhook.status, webhook.disabled_reason = WebhookStatus.DISABLED, reason
        webhook.save(update_fields=["status", "disabled_reason"])
        audit.record("webhook.disabled", user=webhook.user, webhook=webhook.pk, reason=reason)
