"""The messages to a webhook: each is an event as the owner sees it at that moment, signed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from config.api.principal import Principal
from config.events.representation import represent
from config.events.webhooks.signatures import open_secret, sign
from config.http.json import to_json
from config.models import Event, Webhook, WebhookDelivery
from config.models.events import is_visible


@dataclass(frozen=True, slots=True)
class Message:
    """A request that is sent.

    Attributes:
        attempts: how many there were before.
        created_at: when the delivery was.
    """

    delivery_id: int
    webhook_id: int
    attempts: int
    created_at: datetime
    url: str
    headers: Mapping[str, str]
    body: bytes


def build_message(delivery: WebhookDelivery, event: Event | None, epoch: UUID) -> Message | None:
    """The current request of a delivery; None if its owner may not see the event, or it no longer exists.

    Args:
        delivery: with its webhook, and its owner, as they are now.
        event: None of a ping.
        epoch: the present one.
    """
    webhook = delivery.webhook
    address = f"{settings.PUBLIC_URL}/api/v{webhook.version}"
    if delivery.event_id is None:
        message_id, data = f"ping-{delivery.pk}", _describe_ping(delivery, address)
    else:
        principal = Principal(webhook.user, frozenset(webhook.scopes), "webhook")
        if event is None or not is_visible(event, principal):
            return None
        # The same at each attempt: by it a receiver knows what it has got already.
        message_id, data = f"event-{event.pk}", represent(event, epoch, principal, address.__add__)
    body = to_json(data)
    headers = sign(message_id, int(time.time()), body, get_keys(webhook))
    return Message(delivery.pk, webhook.pk, len(delivery.attempts), delivery.created_at, webhook.url, headers, body)


def _describe_ping(delivery: WebhookDelivery, address: str) -> Mapping[str, object]:
    webhook_id = delivery.webhook_id
    return {
        "type": delivery.type,
        "created_at": delivery.created_at,
        "resource": {"type": "webhook", "id": webhook_id, "href": f"{address}/webhooks/{webhook_id}"},
    }


def get_keys(webhook: Webhook) -> list[bytes]:
    """The keys that sign for a webhook: its secret and, for a while, the previous one."""
    sealed = [webhook.secret]
    if webhook.previous_secret and webhook.previous_until and webhook.previous_until > timezone.now():
        sealed.append(webhook.previous_secret)
    return [open_secret(bytes(each)) for each in sealed]
