"""The dashboard on the first page of the admin: totals of all tables, and charts of the last days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.contrib.admin import AdminSite
from django.db.models import Aggregate, Count, Model, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from config.models import AnswerCount, AuditEvent
from config.postgresql import row_counts

DAYS = 30
# A day is compared with the days of the week before it.
COMPARED_DAYS = 7

Number = int | Decimal


@dataclass(frozen=True)
class Chart:
    """A stacked bar chart with one bar a day.

    Attributes:
        title: a few words.
        description: a sentence that says what the numbers are.
        rows: what is aggregated, along the index on `column`.
        column: the time of a row, or its day (UTC).
        aggregates: of the rows of a day, by the name of the series.
        days: consecutive days, in ascending order.
        series: the number of each day, by the name of the series; empty until it is fetched.
    """

    title: str
    description: str
    rows: QuerySet[Model]
    column: str
    aggregates: Mapping[str, Aggregate]
    days: Sequence[date] = ()
    series: Mapping[str, Sequence[Number]] = field(default_factory=dict)

    def fetch(self, days: Sequence[date]) -> Chart:
        """The chart with the numbers of some days; 0 for a day without a row."""
        since = datetime.combine(days[0], time(), UTC)
        rows = self.rows.filter(**{f"{self.column}__gte": since}).order_by()
        # Names have blanks, which an alias must not have.
        aliases = {f"figure_{index}": aggregate for index, aggregate in enumerate(self.aggregates.values())}
        by_day = rows.values(on=TruncDate(self.column, tzinfo=UTC)).annotate(**aliases)
        found = {row["on"]: row for row in by_day}
        series = {
            name: [found.get(day, {}).get(alias) or 0 for day in days]
            for name, alias in zip(self.aggregates, aliases, strict=True)
        }
        return replace(self, days=days, series=series)


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


@dataclass(frozen=True)
class Comparison:
    """A figure of the last days beside the same of the days before.

    Attributes:
        name: of the figure.
        today: the number so far.
        yesterday: the number of the last whole day.
        mean: of the COMPARED_DAYS before yesterday, a day.
        change: of yesterday against the mean, in per cent; None where the mean is 0.
    """

    name: str
    today: Number
    yesterday: Number
    mean: Decimal
    change: int | None


@dataclass
class ModelTotal:
    """The number of rows of a model.

    Attributes:
        name: the plural name of the model.
        total: all of its rows.
        url: its change list, empty if it has none.
        breakdown: the number of rows for each value of a column, by column.
    """

    name: str
    total: int = 0
    url: str = ""
    breakdown: dict[str, dict[str, int]] = field(default_factory=dict)


def compare_days(charts: Iterable[Chart]) -> Iterator[Comparison]:
    """Compares the last days of each series of charts. Today is not over, so that yesterday is what is compared."""
    for chart in charts:
        for name, (*_, yesterday, today) in chart.series.items():
            before = chart.series[name][-2 - COMPARED_DAYS : -2]
            mean = Decimal(sum(before)) / COMPARED_DAYS
            change = round((yesterday - mean) / mean * 100) if mean else None
            yield Comparison(name.capitalize(), today, yesterday, mean, change)


def get_totals(site: AdminSite) -> list[ModelTotal]:
    """Returns the totals of all models whose rows triggers count (config.postgresql.row_counts)."""
    totals = []
    for model, counts in row_counts.fetch_totals().items():
        name = capfirst(str(model._meta.verbose_name_plural))
        total = ModelTotal(name, sum(number for _, number in counts))
        if site.is_registered(model):
            total.url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for values, number in counts:
            for column, value in values.items():
                numbers = total.breakdown.setdefault(column, {})
                numbers[value] = numbers.get(value, 0) + number
        totals.append(total)
    return totals


def build_context(site: AdminSite) -> dict[str, object]:
    """Builds the template context of the dashboard."""
    today = timezone.now().date()
    days = [today - timedelta(days=ago) for ago in reversed(range(DAYS))]
    charts = [chart.fetch(days) for chart in (*_charts, *_build_service_charts())]
    return {
        "totals": get_totals(site),
        "comparisons": list(compare_days(charts)),
        "compared_days": COMPARED_DAYS,
        "charts": charts,
        "days": DAYS,
    }
