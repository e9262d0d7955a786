"""The dashboard on the first page of the admin: totals of all tables, and charts of the last days."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Aggregate, Count, Model, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from config.models import AnswerCount, AuditEvent
from config.postgresql import row_counts

DAYS = 30

Number = int | Decimal
# The number of each day, by the name of the series.
Series = Mapping[str, Sequence[Number]]


class Chart(NamedTuple):
    """A stacked bar chart with one bar a day.

    Attributes:
        title: a few words.
        description: a sentence that says what the numbers are.
        rows: what is aggregated, along the index on `column`.
        column: the time of a row, or its day (UTC).
        aggregates: of the rows of a day, by the name of the series.
    """

    title: str
    description: str
    rows: QuerySet[Model]
    column: str
    aggregates: Mapping[str, Aggregate]

    def fetch(self, days: Sequence[date]) -> Series:
        """The numbers of some days; 0 for a day without a row."""
        since = datetime.combine(days[0], time(), UTC)
        rows = self.rows.filter(**{f"{self.column}__gte": since}).order_by()
        # Names have blanks, which an alias must not have.
        aliases = {f"figure_{index}": aggregate for index, aggregate in enumerate(self.aggregates.values())}
        by_day = rows.values(on=TruncDate(self.column, tzinfo=UTC)).annotate(**aliases)
        found = {row["on"]: row for row in by_day}
        return {
            name: [found.get(day, {}).get(alias) or 0 for day in days]
            for name, alias in zip(self.aggregates, aliases, strict=True)
        }


_charts: list[Chart] = []


def register_chart(title: str, description: str, rows: QuerySet[Model], column: str, **aggregates: Aggregate) -> None:
    """Adds a chart of an app to the dashboard, which itself imports no app; see Chart."""
    _charts.append(Chart(title, description, rows, column, aggregates))


def _build_service_charts() -> list[Chart]:
    errors = {
        "failed (5xx)": Sum("count", filter=Q(status__gte=500)),
        "rejected (4xx)": Sum("count", filter=Q(status__range=(400, 499))),
    }
    versions = {f"version {each.number}": Sum("count", filter=Q(version=each.number)) for each in settings.API_VERSIONS}
    answers, failures = AnswerCount.objects.all(), AuditEvent.objects.filter(event="login.failed")
    about_failures = "Wrong passwords and client secrets per day, across all endpoints and pages."
    return [
        Chart("Errors", "API requests per day that were rejected (4xx) or failed (5xx).", answers, "day", errors),
        Chart("Failed sign-ins", about_failures, failures, "at", {"failed sign-ins": Count("pk")}),
        Chart("Version usage", "API requests per day and version.", answers, "day", versions),
    ]


def get_totals() -> list[dict[str, Any]]:
    """Returns the totals of all models whose rows triggers count (config.postgresql.row_counts), also by columns."""
    totals = []
    for model, counts in row_counts.fetch_totals().items():
        breakdown: dict[str, dict[str, int]] = {}
        for values, number in counts:
            for column, value in values.items():
                numbers = breakdown.setdefault(column, {})
                numbers[value] = numbers.get(value, 0) + number
        total = sum(number for _, number in counts)
        totals.append({"opts": model._meta, "total": total, "breakdown": breakdown})
    return totals


def build_context() -> dict[str, object]:
    """Builds the template context of the dashboard."""
    today = timezone.now().date()
    days = [today - timedelta(days=ago) for ago in reversed(range(DAYS))]
    return {
        "totals": get_totals(),
        "charts": [(chart, chart.fetch(days)) for chart in (*_charts, *_build_service_charts())],
        "days": days,
    }
