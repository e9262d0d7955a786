"""Template tags and filters for the figures on admin pages."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import log10
from typing import NamedTuple

from django import template
from django.utils.text import slugify

from config.admin.dashboard import Chart, Number

register = template.Library()

# In units of the SVG's viewBox, which the style sheet scales.
WIDTH, HEIGHT = 600, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 6, 10, 24
# Between two bars, as a share of a day's width.
GAP = 0.25


class Bar(NamedTuple):
    """A segment of a day's stacked bar.

    Attributes:
        series: the index of its series, which decides its colour.
        tooltip: the day, the name of the series and the number.
    """

    series: int
    x: str
    y: str
    width: str
    height: str
    tooltip: str


@register.filter
def thousands(number: Number) -> str:
    """Formats a number with commas, and a Decimal with two decimal places."""
    return f"{number:,.2f}" if isinstance(number, Decimal) else f"{number:,}"


@register.filter
def percentage(change: int | None) -> str:
    """Formats a change with its sign; an unknown one as a dash."""
    return "–" if change is None else f"{change:+,} %".replace("-", "−")


@register.inclusion_tag("admin/bar_chart.html")
def bar_chart(chart: Chart) -> dict[str, object]:
    """Draws a chart as SVG, with the same numbers in a table for screen readers."""
    top = _round_up(max(map(sum, zip(*chart.series.values(), strict=True))))
    scale = (HEIGHT - TOP - BOTTOM) / float(top)
    step = (WIDTH - LEFT - RIGHT) / len(chart.days)
    days = list(enumerate(chart.days))
    return {
        "id": f"chart-{slugify(chart.title)}",
        "chart": chart,
        "bars": list(_build_bars(chart, step, scale)),
        "gridlines": [
            (f"{HEIGHT - BOTTOM - scale * float(value):.1f}", _abbreviate(value)) for value in (0, top / 2, top)
        ],
        "day_labels": [(f"{LEFT + step * (index + 0.5):.1f}", f"{day:%-d %b}") for index, day in days[::7]],
        "rows": [(day, [values[index] for values in chart.series.values()]) for index, day in reversed(days)],
        "sums": [(name, sum(values)) for name, values in chart.series.items()],
        "view_box": f"0 0 {WIDTH} {HEIGHT}",
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "value_label_x": LEFT - 6,
        "day_label_y": HEIGHT - 6,
    }


def _build_bars(chart: Chart, step: float, scale: float) -> Iterator[Bar]:
    """Builds the bars of all days, each day's from the bottom upwards.

    Args:
        chart: the chart to draw.
        step: the width of a day.
        scale: the height of a bar of 1.
    """
    for index, day in enumerate(chart.days):
        x = LEFT + step * (index + GAP / 2)
        base = float(HEIGHT - BOTTOM)
        for series, (name, values) in enumerate(chart.series.items()):
            height = float(values[index]) * scale
            base -= height
            if height:
                tooltip = f"{day:%-d %B}: {name} {thousands(values[index])}"
                yield Bar(series, f"{x:.1f}", f"{base:.1f}", f"{step * (1 - GAP):.1f}", f"{height:.1f}", tooltip)


def _round_up(maximum: Number) -> int:
    """Returns the end of the value axis: the next of 2, 4, 10, 20, 40, 100 …, whose half is an integer, too."""
    if maximum <= 2:
        return 2
    power = 10 ** int(log10(maximum))
    return next(int(step * power) for step in (1, 2, 4, 10, 20) if step * power >= maximum)


def _abbreviate(value: float) -> str:
    for unit, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"
