"""The tables of the conventions, and the columns that every resource has."""

from config.models.audit import AuditEvent as AuditEvent
from config.models.counters import Counter as Counter
from config.models.counters import RowCount as RowCount
from config.models.erasure import Erasure as Erasure
from config.models.erasure import VisibleManager as VisibleManager
from config.models.events import Event as Event
from config.models.events import EventEpoch as EventEpoch
from config.models.idempotency import MAX_KEY_LENGTH as MAX_KEY_LENGTH
from config.models.idempotency import IdempotencyRecord as IdempotencyRecord
from config.models.outbox import OutboxEntry as OutboxEntry
from config.models.outbox import OutboxStatus as OutboxStatus
from config.models.replicas import ReadPosition as ReadPosition
from config.models.replicas import Timeline as Timeline
from config.models.resource import ChangingResource as ChangingResource
from config.models.resource import Resource as Resource
from config.models.resource import keep_updated_at as keep_updated_at
from config.models.usage import AnswerCount as AnswerCount
from config.models.usage import VersionUse as VersionUse
from config.models.webhooks import DeliveryStatus as DeliveryStatus
from config.models.webhooks import Webhook as Webhook
from config.models.webhooks import WebhookDelivery as WebhookDelivery
from config.models.webhooks import WebhookOutcome as WebhookOutcome
from config.models.webhooks import WebhookProgress as WebhookProgress
from config.models.webhooks import WebhookStatus as WebhookStatus
from config.models.words import Word as Word
from config.models.words import track_words as track_words
