"""What an administrator asks for first: how much there is, and what the last days brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.db import Error, transaction
from django.db.models import Aggregate, Count, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from config.models.resource import AnswerCount, AuditEvent, DayFigure
from config.postgresql import row_counts, transactions

DAYS = 30
# After its beginning a day is over, and all of its rows are committed: no transaction of the service takes an hour.
OVER = timedelta(hours=25)

Number = int | Decimal


@dataclass(frozen=True)
class Chart:
    """Figures of the last days, as bars: those of several series of a day stand on each other.

    Attributes:
        told: what the figures are, in a sentence.
        series: the figure of each day, by the name of what is counted.
    """

    title: str
    told: str
    days: Sequence[date]
    series: Mapping[str, Sequence[Number]]


@dataclass
class Figure:
    """How many rows of a kind there are.

    Attributes:
        href: their list, if there is one.
        parts: how many of them have which value of a column.
    """

    name: str
    total: int = 0
    href: str = ""
    parts: dict[str, dict[str, int]] = field(default_factory=dict)


Charts = Callable[[Sequence[date]], Iterable[Chart]]
_of_apps: list[Charts] = []


def charts(made: Charts) -> Charts:
    """Puts charts of the given days on the first page. Apps say what theirs are: this page knows no app."""
    _of_apps.append(made)
    return made


def last_days() -> list[date]:
    today = timezone.now().astimezone(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(DAYS))]


def by_day(
    rows: QuerySet[Any], column: str, days: Sequence[date], **figures: Aggregate
) -> dict[str, Sequence[Decimal]]:
    """Figures of the rows of each day, by their names, which are to be the dashboard's own.

    Those of days that are over are kept: of a million payments a month, the look at them all would take a second. The
    rest an index on `column` finds.
    """
    kept = {(each.name, each.day): each.value for each in DayFigure.objects.filter(name__in=figures, day__in=days)}
    missing = [day for day in days if not all((name, day) in kept for name in figures)]
    found = rows.filter(**{f"{column}__gte": datetime.combine(missing[0], time(), UTC)}).order_by()
    by_name = {f"figure_{place}": figure for place, figure in enumerate(figures.values())}
    of_day = {
        row["on"]: row for row in found.annotate(on=TruncDate(column, tzinfo=UTC)).values("on").annotate(**by_name)
    }
    new = [
        DayFigure(name=name, day=day, value=Decimal(of_day.get(day, {}).get(f"figure_{place}") or 0))
        for place, name in enumerate(figures)
        for day in missing
        if (name, day) not in kept
    ]
    _keep([figure for figure in new if datetime.combine(figure.day, time(), UTC) < timezone.now() - OVER])
    kept |= {(figure.name, figure.day): figure.value for figure in new}
    return {name: [kept[name, day] for day in days] for name in figures}


def _keep(figures: Sequence[DayFigure]) -> None:
    try:
        with transaction.atomic():
            DayFigure.objects.bulk_create(figures, ignore_conflicts=True)
    except Error as error:
        # A standby takes no writes: it counts them again the next time.
        if not transactions.is_away(error):
            raise


def whole(figures: Mapping[str, Sequence[Decimal]]) -> dict[str, list[Number]]:
    """Figures that are numbers of rows."""
    return {name: [int(value) for value in values] for name, values in figures.items()}


def spread(
    found: Iterable[tuple[date, str, int]], names: Sequence[str], days: Sequence[date]
) -> dict[str, list[Number]]:
    """Numbers by day and name, as series of all days."""
    counts: Counter[tuple[date, str]] = Counter()
    for day, name, number in found:
        counts[day, name] += number
    return {name: [counts[day, name] for day in days] for name in names}


def of_service(days: Sequence[date]) -> Iterator[Chart]:
    names = ("failed (5xx)", "refused (4xx)")
    answers = AnswerCount.objects.filter(day__gte=days[0])
    rows = answers.filter(status__gte=400).values_list("day", "status").annotate(Sum("count"))
    found = [(day, names[status < 500], number) for day, status, number in rows]
    yield Chart("Errors", "Requests to the API that failed or were refused, by day.", days, spread(found, names, days))
    events = AuditEvent.objects.filter(event="login.failed")
    told = "Wrong passwords and client secrets, by day, at whichever door."
    failed = by_day(events, "at", days, **{"failed log-ins": Count("pk")})
    yield Chart("Failed log-ins", told, days, whole(failed))
    versions = [f"version {version.number}" for version in settings.API_VERSIONS]
    uses = answers.values_list("day", "version").annotate(Sum("count"))
    found = [(day, f"version {version}", number) for day, version, number in uses]
    yield Chart("Use of versions", "Requests to the API by day and version.", days, spread(found, versions, days))


def totals(site: AdminSite) -> list[Figure]:
    """Everything that is counted, from the counts that triggers keep (config.postgresql.row_counts)."""
    figures = []
    for model, parts in row_counts.totals().items():
        name = capfirst(str(model._meta.verbose_name_plural))
        figure = Figure(name, sum(number for _, number in parts))
        if site.is_registered(model):
            figure.href = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for values, number in parts:
            for column, value in values.items():
                numbers = figure.parts.setdefault(column, {})
                numbers[value] = numbers.get(value, 0) + number
        figures.append(figure)
    return figures


def context(site: AdminSite) -> dict[str, Any]:
    days = last_days()
    found = [chart for made in (*_of_apps, of_service) for chart in made(days)]
    return {"totals": totals(site), "charts": found, "days": DAYS}
