"""What a version of the API is, and every breaking change there ever was.

Plain Python: the settings build their table of it.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from functools import lru_cache
from time import time


class Change(Enum):
    """A breaking change: the version that it came with, and what it means to a consumer.

    The code asks `has(version, Change.…)` where it behaves differently; `GET /versions` and the documentation show the
    text.
    """

    def __init__(self, since: int, text: str) -> None:
        self.since = since
        self.text = " ".join(text.split())

    CURSOR_BY_DEFAULT = (2, "Lists without `page` or `offset` are paged by cursor.")
    NUMBERS_ONLY = (
        2,
        "A `page`, `offset` or `limit` that is not a number is rejected instead of replaced by the default.",
    )
    NO_UNKNOWN_NAMES = (
        2,
        """Unknown body fields, read-only fields whose value differs from the current one, and unknown query parameters
        are rejected instead of ignored.""",
    )
    MONEY_AS_TEXT = (
        2,
        """`amount` is returned as a string with two decimals ("12.30"). Requests can send a string of plain digits with
        at most two decimals, or a number.""",
    )


def has(version: "Version | None", change: Change) -> bool:
    """Whether a change has come with a version, or before it. What has no version is as lenient as the first one."""
    return version is not None and version.number >= change.since


class Status(StrEnum):
    CURRENT = "current"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


# Known by identity: a version is looked up by the table of all of them, at each request.
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version and the dates of its life, each of which begins at midnight UTC.

    Attributes:
        number: as addresses and headers name it.
        released: when it became usable.
        deprecated: from when on it should no longer be used; announced as soon as it is set.
        sunset: from when on requests for it are refused.
    """

    number: int
    released: date
    deprecated: date | None = None
    sunset: date | None = None

    def __str__(self) -> str:
        return str(self.number)

    @property
    def changes(self) -> list[str]:
        """Descriptions of what changed with this version."""
        return [change.text for change in Change if change.since == self.number]

    @property
    def status(self) -> Status:
        if self.sunset and time() >= midnight(self.sunset):
            return Status.RETIRED
        return Status.DEPRECATED if self.deprecated else Status.CURRENT


@lru_cache(maxsize=64)
def midnight(day: date) -> float:
    """The moment at which a day begins in UTC, in seconds as `time()` tells them."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
