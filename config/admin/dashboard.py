"""The dashboard on the first page of the admin: totals of all tables, and charts of the last days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.contrib.admin import AdminSite
from django.db import Error, transaction
from django.db.models import Aggregate, Count, Model, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from config.models import AnswerCount, AuditEvent, DayFigure
from config.postgresql import row_counts, transactions

DAYS = 30
# What a day is compared with: the days of a week before it.
COMPARED_DAYS = 7
# Counted from the first moment of a day: no transaction of the service takes an hour, so all rows of the day are
# committed by then.
DAY_COMPLETE_AFTER = timedelta(hours=25)

Number = int | Decimal


@dataclass(frozen=True)
class Chart:
    """A stacked bar chart with one bar a day.

    Attributes:
        title: a few words.
        description: a sentence that says what the numbers are.
        days: consecutive days, in ascending order.
        series: the number of each day, by the name of the series.
    """

    title: str
    description: str
    days: Sequence[date]
    series: Mapping[str, Sequence[Number]]


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


ChartBuilder = Callable[[Sequence[date]], Iterable[Chart]]
_app_charts: list[ChartBuilder] = []


def register_charts(builder: ChartBuilder) -> ChartBuilder:
    """Adds the charts that the decorated function of an app builds to the dashboard, which itself imports no app."""
    _app_charts.append(builder)
    return builder


def get_last_days() -> list[date]:
    today = timezone.now().astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(DAYS))]


def aggregate_by_day(
    queryset: QuerySet[Model], column: str, days: Sequence[date], **aggregates: Aggregate
) -> dict[str, Sequence[Decimal]]:
    """Aggregates the rows of each day (UTC).

    The values of complete days are stored, as aggregating a million payments a month would take a second. The index on
    `column` finds the rows of the other days.

    Args:
        queryset: the rows.
        column: the time of a row.
        days: consecutive days up to today, in ascending order.
        aggregates: the aggregates by name. The values are stored by this name, so no two charts may share it.

    Returns:
        The value of each day, in the order of `days`, by the name of the aggregate.
    """
    stored = DayFigure.objects.filter(name__in=aggregates, day__in=days)
    values = {(figure.name, figure.day): figure.value for figure in stored}
    missing = [day for day in days if not all((name, day) in values for name in aggregates)]
    # Names have blanks, which an alias must not have.
    aliases = {f"figure_{index}": aggregate for index, aggregate in enumerate(aggregates.values())}
    rows = queryset.filter(**{f"{column}__gte": datetime.combine(missing[0], time(), UTC)}).order_by()
    rows_by_day = rows.annotate(on=TruncDate(column, tzinfo=UTC)).values("on").annotate(**aliases)
    aggregated = {row["on"]: row for row in rows_by_day}
    figures = [
        DayFigure(name=name, day=day, value=Decimal(aggregated.get(day, {}).get(f"figure_{index}") or 0))
        for index, name in enumerate(aggregates)
        for day in missing
        if (name, day) not in values
    ]
    _store_complete(figures)
    values |= {(figure.name, figure.day): figure.value for figure in figures}
    return {name: [values[name, day] for day in days] for name in aggregates}


def _store_complete(figures: Sequence[DayFigure]) -> None:
    """Stores the figures of complete days."""
    end = timezone.now() - DAY_COMPLETE_AFTER
    complete = [figure for figure in figures if datetime.combine(figure.day, time(), UTC) < end]
    try:
        with transaction.atomic():
            DayFigure.objects.bulk_create(complete, ignore_conflicts=True)
    except Error as error:
        # A standby is read-only: the values are aggregated again for the next page.
        if not transactions.is_unavailable(error):
            raise


def to_integers(series: Mapping[str, Sequence[Decimal]]) -> dict[str, list[Number]]:
    """Converts series that count rows."""
    return {name: [int(value) for value in values] for name, values in series.items()}


def build_series(
    counts: Iterable[tuple[date, str, int]], names: Sequence[str], days: Sequence[date]
) -> dict[str, list[Number]]:
    """Builds the series of a chart from single counts.

    Args:
        counts: the day, the name of the series and the number; several of one day and name are added up.
        names: the names of the series, in their order.
        days: the days of the chart.

    Returns:
        The number of each day, 0 without any count, by the name of the series.
    """
    sums: Counter[tuple[date, str]] = Counter()
    for day, name, number in counts:
        sums[day, name] += number
    return {name: [sums[day, name] for day in days] for name in names}


def build_service_charts(days: Sequence[date]) -> Iterator[Chart]:
    answers = AnswerCount.objects.filter(day__gte=days[0])
    yield _build_errors(answers, days)
    failures = AuditEvent.objects.filter(event="login.failed")
    failed = aggregate_by_day(failures, "at", days, **{"failed sign-ins": Count("pk")})
    description = "Wrong passwords and client secrets per day, across all endpoints and pages."
    yield Chart("Failed sign-ins", description, days, to_integers(failed))
    yield _build_version_use(answers, days)


def _build_errors(answers: QuerySet[AnswerCount], days: Sequence[date]) -> Chart:
    names = ("failed (5xx)", "rejected (4xx)")
    rows = answers.filter(status__gte=400).values_list("day", "status").annotate(Sum("count"))
    series = build_series(((day, names[status < 500], number) for day, status, number in rows), names, days)
    return Chart("Errors", "API requests per day that were rejected (4xx) or failed (5xx).", days, series)


def _build_version_use(answers: QuerySet[AnswerCount], days: Sequence[date]) -> Chart:
    names = [f"version {version.number}" for version in settings.API_VERSIONS]
    rows = answers.values_list("day", "version").annotate(Sum("count"))
    series = build_series(((day, f"version {version}", number) for day, version, number in rows), names, days)
    return Chart("Version usage", "API requests per day and version.", days, series)


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
    days = get_last_days()
    charts = [chart for build_charts in (*_app_charts, build_service_charts) for chart in build_charts(days)]
    return {
        "totals": get_totals(site),
        "comparisons": list(compare_days(charts)),
        "compared_days": COMPARED_DAYS,
        "charts": charts,
        "days": DAYS,
    }
