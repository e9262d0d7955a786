"""The table that a run prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.load.cases import Found
from tests.load.measuring import Row
from tests.trials import describe

COLUMNS = (
    *("Case", "Readers/s unloaded", "share", "p50 ms", "p99 ms", "unloaded p99 ms", "longest ms"),
    *(
        "/health/live longest ms",
        "unloaded longest ms",
        "probe late ms",
        "Answered",
        "Machine busy",
        "clients",
        "others",
    ),
)


def table(rows: Sequence[Row], alone: Mapping[str, Found]) -> str:
    """One Markdown table, and below it what each case tells of itself, also those that run without the readers."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *map(_line, rows), ""]
    found = {row.case: row.found for row in rows} | dict(alone)
    lines += [f"* {name}: {'; '.join([describe(one.statuses), *one.notes])}" for name, one in found.items()]
    return "\n".join(lines)


def _line(row: Row) -> str:
    cells = [
        row.case,
        f"{row.unloaded.rate:,.0f}",
        f"{row.share:.0%}",
        f"{row.loaded.p50:.1f}",
        f"{row.loaded.p99:.1f}",
    ]
    cells += [f"{row.unloaded.p99:.1f}", f"{row.loaded.longest:.0f}"]
    cells += [f"{seconds * 1000:.0f}" for seconds in (row.health.longest, row.healthy.longest, row.health.late)]
    cells += [describe(row.found.statuses)]
    return f"| {' | '.join([*cells, *(f'{share:.0%}' for share in row.machine)])} |"
