"""The tables of the conventions, and the columns that every resource has."""

from config.models.audit import AuditEvent
from config.models.counters import Counter, RowCount
from config.models.erasure import Erasure, VisibleManager
from config.models.events import Event, EventEpoch
from config.models.idempotency import MAX_KEY_LENGTH, IdempotencyRecord
from config.models.outbox import OutboxEntry, OutboxStatus
from config.models.replicas import ReadPosition, Timeline
from config.models.resource import ChangingResource, Resource, keep_updated_at
from config.models.usage import AnswerCount, VersionUse
from config.models.webhooks import (
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    WebhookOutcome,
    WebhookProgress,
    WebhookStatus,
)
from config.models.words import Word, track_words

__all__ = [
    "MAX_KEY_LENGTH",
    "AnswerCount",
    "AuditEvent",
    "ChangingResource",
    "Counter",
    "DeliveryStatus",
    "Erasure",
    "Event",
    "EventEpoch",
    "IdempotencyRecord",
    "OutboxEntry",
    "OutboxStatus",
    "ReadPosition",
    "Resource",
    "RowCount",
    "Timeline",
    "VersionUse",
    "VisibleManager",
    "Webhook",
    "WebhookDelivery",
    "WebhookOutcome",
    "WebhookProgress",
    "WebhookStatus",
    "Word",
    "keep_updated_at",
    "track_words",
]
