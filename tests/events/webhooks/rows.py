"""Rows of webhooks, made without a request."""

from __future__ import annotations

from typing import Any

from config.api.principal import SCOPES
from config.events.webhooks.signatures import build_secret, seal_secret
from config.models import Webhook, WebhookDelivery


def make_webhook(user: Any, **columns: Any) -> Webhook:
    return Webhook.objects.create(
        **{
            "user": user,
            "url": "https://example.com/hook",
            "types": ["order.created"],
            "scopes": [*SCOPES],
            "version": 2,
            "secret": seal_secret(build_secret()),
            **columns,
        }
    )


def make_pair(user: Any) -> int:
    """The id of a webhook, and of a delivery to it."""
    # Beyond those that the sequences give.
    webhook = make_webhook(user, id=1_000_000 + user.pk)
    return WebhookDelivery.objects.create(id=webhook.pk, webhook=webhook, type="order.created", event_id=1).pk
