"""What is not counted but looked up, each time that Prometheus asks."""

import platform
from collections.abc import Iterator, Mapping
from typing import Any

import django
import psycopg
from django.conf import settings
from django.db import Error, connection
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from config import COMMIT, VERSION
from config.models import OutboxStatus
from config.models.webhooks import OUTCOMES
from config.postgresql import row_counts
from config.postgresql.replicas import ask
from config.server.readiness import MAX_AGE_SECONDS

_COUNT_ENTRIES = (
    "SELECT status, count(*), extract(epoch FROM now() - min(due_at))::float8 FROM config_outboxentry GROUP BY status"
)
# Those of endpoints that fail wait for these.
_COUNT_DELIVERIES = """
SELECT count(*), extract(epoch FROM now() - min(due_at) FILTER (WHERE is_late))::float8 FROM (
    SELECT due_at, webhook.status = 'active' AND failing_since IS NULL AND due_at <= now() AND NOT is_leased AS is_late
    FROM config_webhookdelivery AS delivery JOIN config_webhook AS webhook ON webhook.id = webhook_id
    WHERE delivery.status = 'pending' LIMIT 100000
) AS pending
"""
# Rolled-back events count, too. Followers read up to the oldest transaction that has an id.
_LOOK_AT_EVENTS = """
SELECT coalesce((SELECT last_value FROM pg_sequences WHERE sequencename = 'config_event_id_seq'), 0),
    coalesce(extract(epoch FROM now() - min(xact_start)), 0)::float8
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""
# PostgreSQL shows a role the waits of its own sessions, and those of all to a member of pg_monitor.
_COUNT_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


# How many are pending, since when one is due, and how many attempts had each outcome.
_Deliveries = tuple[int, float | None, dict[str, int]]
# How many were written, and for how long the oldest transaction writes.
_Events = tuple[int, float]


class _Collector:
    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        versions = {
            "version": VERSION,
            "commit": COMMIT,
            "python": platform.python_version(),
            "django": django.get_version(),
        }
        build = GaugeMetricFamily("build_info", "What runs; always 1.", labels=list(versions))
        build.add_metric(list(versions.values()), 1)
        yield build
        found = _fetch()
        totals, waiting, entries, told = found or (None, None, {}, None)
        yield GaugeMetricFamily("database_up", "Whether the database answered this scrape.", totals is not None)
        rows = GaugeMetricFamily("table_rows", "Rows of each table whose rows are counted.", labels=["table"])
        for table, total in (totals or {}).items():
            rows.add_metric([table], total)
        yield rows
        if totals is not None:
            yield from _build_outbox(entries)
        if told is not None:
            (written, seconds), deliveries = told
            yield CounterMetricFamily("events", "Events that were written.", written)
            yield GaugeMetricFamily("events_horizon_seconds", "How far followers may be behind.", seconds)
            yield from _build_deliveries(*deliveries)
        if waiting is not None:
            yield GaugeMetricFamily("database_lock_waiters", "Sessions that wait for a lock.", waiting)


def _build_outbox(entries: Mapping[str, tuple[int, float]]) -> Iterator[GaugeMetricFamily]:
    family = GaugeMetricFamily("outbox_entries", "What is to be sent, or was in the last days.", labels=["status"])
    for status in OutboxStatus.values:
        family.add_metric([status], entries.get(status, (0, 0.0))[0])
    yield family
    _, overdue = entries.get(OutboxStatus.PENDING, (0, 0.0))
    yield GaugeMetricFamily("outbox_overdue_seconds", "For how long the oldest entry is due.", max(0.0, overdue))


def _build_deliveries(
    pending: int, overdue: float | None, outcomes: Mapping[str, int]
) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
    yield GaugeMetricFamily("webhook_deliveries_pending", "Deliveries that are to be sent, up to 100,000.", pending)
    text = "For how long the oldest delivery is due, of endpoints that answer."
    yield GaugeMetricFamily("webhook_overdue_seconds", text, max(0.0, overdue or 0.0))
    attempts = CounterMetricFamily("webhook_attempts", "Requests that were sent to webhooks.", labels=["outcome"])
    for outcome in OUTCOMES:
        attempts.add_metric([outcome], outcomes.get(outcome, 0))
    yield attempts


def _fetch() -> tuple[dict[str, int], int, dict[str, tuple[int, float]], tuple[_Events, _Deliveries] | None] | None:
    """The number of rows by table, of sessions that wait, and of entries of the outbox by status, with the time since
    when the first one is due; of events and deliveries, with EVENTS; None when the database does not answer."""
    try:
        # A scrape must come to an end when the database is silent: that is when its figures are wanted.
        ask(connection, "SELECT 1", MAX_AGE_SECONDS)
        totals = row_counts.fetch_totals()
        with connection.cursor() as cursor:
            cursor.execute(_COUNT_WAITING)
            ((waiting,),) = cursor.fetchall()
            cursor.execute(_COUNT_ENTRIES)
            entries = {status: (count, seconds) for status, count, seconds in cursor.fetchall()}
            told = (_fetch_events(cursor), _fetch_deliveries(cursor)) if settings.EVENTS else None
    except (Error, psycopg.Error):
        connection.close()
        return None
    rows = {model._meta.db_table: sum(rows for _, rows in parts) for model, parts in totals.items()}
    return rows, waiting, entries, told


def _fetch_events(cursor: Any) -> _Events:
    cursor.execute(_LOOK_AT_EVENTS)
    ((written, seconds),) = cursor.fetchall()
    return written, seconds


def _fetch_deliveries(cursor: Any) -> _Deliveries:
    cursor.execute(_COUNT_DELIVERIES)
    ((pending, overdue),) = cursor.fetchall()
    cursor.execute("SELECT label, count FROM config_webhookoutcome")
    return pending, overdue, dict(cursor.fetchall())


_registry = CollectorRegistry()
_registry.register(_Collector())


def exposition() -> bytes:
    """In Prometheus' text format."""
    return generate_latest(_registry)
