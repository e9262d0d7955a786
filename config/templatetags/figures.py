"""Template tags and filters for the figures on admin pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from django import template
from django.utils.text import slugify

from config.admin.dashboard import Chart, Number, Series

register = template.Library()


class Bar(NamedTuple):
    """A segment of a day's stacked bar, in units of days and of the chart's numbers, from the top left.

    Attributes:
        series: the index of its series, which decides its colour.
        tooltip: the day, the name of the series and the number.
    """

    series: int
    x: str
    y: str
    height: str
    tooltip: str


@register.filter
def thousands(number: Number) -> str:
    """Formats a number with commas, and a Decimal with two decimal places."""
    return f"{number:,.2f}" if isinstance(number, Decimal) else f"{number:,}"


@register.inclusion_tag("admin/bar_chart.html")
def bar_chart(chart: Chart, series: Series, days: Sequence[date]) -> dict[str, object]:
    """Draws a chart as SVG, with the same numbers in a table for screen readers."""
    top = max(map(sum, zip(*series.values(), strict=True)))
    return {
        "id": f"chart-{slugify(chart.title)}",
        "chart": chart,
        "days": days,
        "bars": list(_build_bars(series, days, top)),
        "top": top,
        "view_box": f"0 0 {len(days)} {top or 1}",
        "rows": [(day, values) for day, *values in reversed(list(zip(days, *series.values(), strict=True)))],
        "sums": [(name, sum(values)) for name, values in series.items()],
    }


def _build_bars(series: Series, days: Sequence[date], top: Number) -> Iterator[Bar]:
    """Builds the bars of all days, each day's from the bottom upwards."""
    for place, day in enumerate(days):
        y = top
        for index, (name, values) in enumerate(series.items()):
            if value := values[place]:
                y -= value
                tooltip = f"{day:%-d %B}: {name} {thousands(value)}"
                yield Bar(index, f"{place + 0.125}", f"{y}", f"{value}", tooltip)
