"""What the nodes have logged of an answer that nobody should get, or while a reader had no rows.

The logs end with the installation: what is met once in ten runs has to be told by the run that meets it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.logs import read_log

# Of one answer, or one gap.
MOST_LINES = 40
# A line is written a moment before or after what it tells is seen elsewhere.
MARGIN = 0.2


class Refusal(NamedTuple):
    """What a reader got instead of rows, by the clock of `time.monotonic`."""

    began: float
    ended: float
    what: str


class Line(NamedTuple):
    """A line of a node's log, its time by the clock of `time.monotonic`."""

    at: float
    node: str
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.at:.2f} {self.node} {json.dumps(self.content)}"


class Evidence:
    """What is to be known of the nodes when everything has ended.

    Args:
        logs: of the nodes.
    """

    def __init__(self, logs: Collection[Path]) -> None:
        since = time.time() - time.monotonic()
        self._lines = sorted((line for log in logs for line in _read(log, since)), key=lambda line: line.at)

    def of_answer(self, answer: dict[str, Any]) -> Iterator[str]:
        """What was logged of an answer in the ledger; where it has no name, all that failed meanwhile."""
        name = answer.get("request_id")
        found = [line for line in self._lines if name and line.content.get("request_id") == name]
        return _tell(found or self._find_failures(answer["began"], answer["ended"]))

    def of_gap(self, start: float, end: float, refusals: Sequence[Refusal]) -> Iterator[str]:
        """What a reader was told while it had no rows, and what failed meanwhile."""
        yield f"No rows from {start:.2f} to {end:.2f}"
        yield from (f"{began:.2f} to {ended:.2f}: {what}" for began, ended, what in refusals if start < ended <= end)
        yield from _tell(self._find_failures(start, end))

    def _find_failures(self, start: float, end: float) -> list[Line]:
        """Refused writes are told by the lines before them."""
        return [
            line
            for line in self._lines
            if start - MARGIN < line.at < end + MARGIN
            and line.content["level"] != "INFO"
            and line.content.get("method", "GET") == "GET"
        ]


def _tell(lines: Sequence[Line]) -> Iterator[str]:
    yield from map(str, lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES} more lines"


def _read(log: Path, since: float) -> Iterator[Line]:
    for content in read_log(log):
        if "time" in content:
            yield Line(datetime.fromisoformat(content.pop("time")).timestamp() - since, log.stem, content)
