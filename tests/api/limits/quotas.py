"""The fields of a quota, read by a library for structured fields (RFC 9651) instead of by a pattern of our own."""

from dataclasses import dataclass
from typing import Any

import http_sf


@dataclass
class Quota:
    """What an answer tells of the one quota that it counted against."""

    policy: str
    limit: int
    window: int
    remaining: int
    reset: int


def quota_of(answer: Any) -> Quota:
    ((name, policy),) = http_sf.parse(answer.headers["RateLimit-Policy"].encode(), tltype="list")
    ((same, state),) = http_sf.parse(answer.headers["RateLimit"].encode(), tltype="list")
    assert name == same
    assert (policy.keys(), state.keys()) == ({"q", "w"}, {"r", "t"})
    return Quota(name, policy["q"], policy["w"], state["r"], state["t"])


def is_counted(answer: Any) -> bool:
    return "RateLimit" in answer.headers
