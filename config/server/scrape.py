"""What is not counted but looked up, each time that Prometheus asks."""

import platform
from collections.abc import Iterator

import django
import psycopg
from django.conf import settings
from django.db import Error, connection
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from config import COMMIT, VERSION
from config.models import OutboxStatus
from config.models.webhooks import OUTCOMES
from config.postgresql import row_counts
from config.postgresql.compiling import fetch_rows
from config.postgresql.connections import ask
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
    coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""
# PostgreSQL shows a role the waits of its own sessions, and those of all to a member of pg_monitor.
_COUNT_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class _Collector:
    def collect(self) -> Iterator[Metric]:
        versions = {
            "version": VERSION,
            "commit": COMMIT,
            "python": platform.python_version(),
            "django": django.get_version(),
        }
        build = GaugeMetricFamily("build_info", "What runs; always 1.", labels=list(versions))
        build.add_metric(list(versions.values()), 1)
        yield build
        found = _look_up()
        yield GaugeMetricFamily("database_up", "Whether the database answered this scrape.", found is not None)
        yield from found or ()


def _look_up() -> list[Metric] | None:
    """What the database tells; None when it does not answer."""
    try:
        # A scrape must come to an end when the database is silent: that is when its figures are wanted.
        ask(connection, "SELECT 1", MAX_AGE_SECONDS)
        return [*_look_at_tables(), *(_look_at_events() if settings.EVENTS else ())]
    except (Error, psycopg.Error):
        connection.close()
        return None


def _look_at_tables() -> Iterator[Metric]:
    rows = GaugeMetricFamily("table_rows", "Rows of each table whose rows are counted.", labels=["table"])
    for model, parts in row_counts.fetch_totals().items():
        rows.add_metric([model._meta.db_table], sum(total for _, total in parts))
    yield rows
    ((waiting,),) = fetch_rows(_COUNT_WAITING)
    yield GaugeMetricFamily("database_lock_waiters", "Sessions that wait for a lock.", waiting)
    found = {status: (count, seconds) for status, count, seconds in fetch_rows(_COUNT_ENTRIES)}
    entries = GaugeMetricFamily("outbox_entries", "What is to be sent, or was in the last days.", labels=["status"])
    for status in OutboxStatus.values:
        entries.add_metric([status], found.get(status, (0, 0.0))[0])
    yield entries
    _, overdue = found.get(OutboxStatus.PENDING, (0, 0.0))
    yield GaugeMetricFamily("outbox_overdue_seconds", "For how long the oldest entry is due.", max(0.0, overdue))


def _look_at_events() -> Iterator[Metric]:
    ((written, seconds),) = fetch_rows(_LOOK_AT_EVENTS)
    yield CounterMetricFamily("events", "Events that were written.", written)
    yield GaugeMetricFamily("events_horizon_seconds", "How far followers may be behind.", seconds)
    ((pending, overdue),) = fetch_rows(_COUNT_DELIVERIES)
    yield GaugeMetricFamily("webhook_deliveries_pending", "Deliveries that are to be sent, up to 100,000.", pending)
    text = "For how long the oldest delivery is due, of endpoints that answer."
    yield GaugeMetricFamily("webhook_overdue_seconds", text, max(0.0, overdue or 0.0))
    outcomes = dict(fetch_rows("SELECT label, count FROM config_webhookoutcome"))
    attempts = CounterMetricFamily("webhook_attempts", "Requests that were sent to webhooks.", labels=["outcome"])
    for outcome in OUTCOMES:
        attempts.add_metric([outcome], outcomes.get(outcome, 0))
    yield attempts


def exposition() -> bytes:
    """In Prometheus' text format."""
    return generate_latest(_Collector())
