"""The outcomes of an attempt. Separate from the sending code, because only the deliverer may import httpx."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

SECONDS_OF_AN_ATTEMPT = 10.0
# The stored part of a response.
MAX_ANSWER_BYTES = 1024
MAX_ERROR_LENGTH = 200
GONE = 410


class Outcome(NamedTuple):
    """The outcome of an attempt.

    Attributes:
        at: when it began.
        duration_ms: how long it took.
        status: of the answer; None without one.
        error: why there is none.
        body: how the answer begins.
        retry_after: what the answer asks for.
    """

    at: datetime
    duration_ms: int
    status: int | None = None
    error: str = ""
    body: str = ""
    retry_after: timedelta | None = None

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def label(self) -> str:
        """For metrics."""
        if self.status is None:
            return "no_answer"
        return "delivered" if self.is_success else f"{min(self.status // 100, 5)}xx"
