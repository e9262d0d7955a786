"""How the admin's pages draw figures."""

from __future__ import annotations

from decimal import Decimal
from math import log10
from typing import Any, NamedTuple

from django import template
from django.utils.text import slugify

from config.admin.dashboard import Chart, Number

register = template.Library()

# Of the picture, in units of its own: the page decides how large it is shown.
WIDTH, HEIGHT = 600, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 6, 10, 24
GAP = 0.25


class Bar(NamedTuple):
    """A part of a day's bar. `series` is its place among them, for its colour; `told` what a pointer is shown."""

    series: int
    x: str
    y: str
    width: str
    height: str
    told: str


@register.filter
def thousands(number: Number) -> str:
    """With commas, and the cents of an amount."""
    return f"{number:,.2f}" if isinstance(number, Decimal) else f"{number:,}"


@register.inclusion_tag("admin/bar_chart.html")
def bars(chart: Chart) -> dict[str, Any]:
    """A chart as SVG, with the same figures as a table for those who do not see it."""
    top = _round_up(max(map(sum, zip(*chart.series.values(), strict=True))))
    scale = (HEIGHT - TOP - BOTTOM) / float(top)
    step = (WIDTH - LEFT - RIGHT) / len(chart.days)
    drawn = []
    for index, day in enumerate(chart.days):
        base = float(HEIGHT - BOTTOM)
        for series, (name, values) in enumerate(chart.series.items()):
            height = float(values[index]) * scale
            base -= height
            told = f"{day:%-d %B}: {name} {thousands(values[index])}"
            x = LEFT + step * (index + GAP / 2)
            if height:
                drawn.append(Bar(series, f"{x:.1f}", f"{base:.1f}", f"{step * (1 - GAP):.1f}", f"{height:.1f}", told))
    lines = [(f"{HEIGHT - BOTTOM - scale * float(value):.1f}", _short(value)) for value in (0, top / 2, top)]
    dates = [(index, chart.days[index]) for index in range(0, len(chart.days), 7)]
    return {
        "id": f"chart-{slugify(chart.title)}",
        "chart": chart,
        "drawn": drawn,
        "lines": lines,
        "dates": [(f"{LEFT + step * (index + 0.5):.1f}", f"{day:%-d %b}") for index, day in dates],
        "rows": [
            (day, [values[index] for values in chart.series.values()])
            for index, day in reversed(list(enumerate(chart.days)))
        ],
        "sums": [(name, sum(values)) for name, values in chart.series.items()],
        "view": f"0 0 {WIDTH} {HEIGHT}",
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "label_x": LEFT - 6,
        "foot": HEIGHT - 6,
    }


def _round_up(greatest: Number) -> int:
    """The end of the axis: the next of 2, 4, 10, 20, 40, 100 …, whose half is a whole number, too."""
    if greatest <= 2:
        return 2
    power = 10 ** int(log10(greatest))
    return next(int(step * power) for step in (1, 2, 4, 10, 20) if step * power >= greatest)


def _short(value: float) -> str:
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"
