"""Judges what readers are shown: never less than they have seen or written, and what others write in time.

Whatever is written is a number that only grows (`Fact`). So all answers are judged in one way, whatever they show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Fact:
    """A number in the database that only grows.

    Attributes:
        name: what it is called in a violation.
        attempted: the greatest value that anybody has begun to write. A greater one is shown to nobody.
        written: the greatest value of which an answer has told that it is written.
    """

    def __init__(self, name: str, value: int = 0) -> None:
        self.name = name
        self.attempted = self.written = self._start = value
        self._values: list[int] = []
        self._times: list[float] = []
        self._floors: dict[int, tuple[int, str]] = {}

    def attempt(self) -> int:
        """Returns the value that is going to be written."""
        self.attempted += 1
        return self.attempted

    def acknowledge(self, value: int, now: float) -> None:
        """Notes that a value is written, at a time in seconds."""
        self.written = value
        self._values.append(value)
        self._times.append(now)

    def get_floor(self, reader: int) -> tuple[int, str]:
        """The least that a request of this reader may be shown, if it is sent now, and which request told that."""
        return self._floors.get(reader, (self._start, "the beginning"))

    def raise_floor(self, reader: int, value: int, request: str) -> None:
        """Notes that a reader has seen or written a value, by a request that is answered."""
        if value > self.get_floor(reader)[0]:
            self._floors[reader] = value, request

    def get_lag(self, value: int, asked: float) -> float:
        """How many seconds before a request was sent there was more than the value that it was shown."""
        index = bisect_right(self._values, value)
        return max(0.0, asked - self._times[index]) if index < len(self._times) else 0.0


class Asked(NamedTuple):
    """A request that was sent: what its answer must show at the least, and which one told that."""

    reader: int
    request: str
    time: float
    floors: Sequence[tuple[Fact, int, str]]


@dataclass
class Judge:
    """Compares answers with what was seen and written before.

    Attributes:
        max_lag: within how many seconds everybody is shown what anybody has written.
        violations: by kind, what was wrong.
        compared: how many numbers were.
        worst_lag: how many seconds after it was written somebody was not shown what another one had written.
    """

    max_lag: float
    violations: dict[str, list[str]] = field(
        default_factory=lambda: {"less than seen or written": [], "never written": [], "too late": []}
    )
    compared: int = 0
    worst_lag: float = 0.0

    def begin(self, reader: int, request: str, facts: Sequence[Fact], now: float) -> Asked:
        """Is called before a request is sent whose answer shows these facts."""
        return Asked(reader, request, now, [(fact, *fact.get_floor(reader)) for fact in facts])

    def end(self, asked: Asked, values: Sequence[int]) -> None:
        """Is called when the answer to a request is there, with what it shows of each fact."""
        for (fact, floor, earlier), value in zip(asked.floors, values, strict=True):
            self.compared += 1
            lag = fact.get_lag(value, asked.time)
            self.worst_lag = max(self.worst_lag, lag)
            told = (
                f"{fact.name}: {value}, {lag:.3f} s late, by {asked.request} of user {asked.reader};"
                f" {floor} by {earlier} before"
            )
            if value < floor:
                self.violations["less than seen or written"].append(told)
            if value > fact.attempted:
                self.violations["never written"].append(told)
            if lag > self.max_lag:
                self.violations["too late"].append(told)
            fact.raise_floor(asked.reader, value, asked.request)
