"""The exchanges that the documentation shows: a curl command after `$`, then what it prints, in which situation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import connection
from django.test import override_settings

from config.api.writing import idempotency
from tests.api.test_failures import database_away
from users.models import User

ANYTHING = "…"
# What an answer gives, by the names by which the next commands call it.
GIVEN = {
    "access_token": "ACCESS_TOKEN",
    "refresh_token": "REFRESH_TOKEN",
    "key": "NEW_KEY",
    "nextCursor": "NEXT_CURSOR",
}


@dataclass
class Exchange:
    heading: str
    command: str
    printed: str
    shows_head: bool = False

    @property
    def expected_body(self) -> Any:
        text = self.printed.partition("\n\n")[2] if self.shows_head else self.printed
        return json.loads(text) if text.strip() else None

    @property
    def expected_status(self) -> int | None:
        return int(self.printed.split()[1]) if self.shows_head else None

    @property
    def expected_headers(self) -> dict[str, str]:
        lines = self.printed.partition("\n\n")[0].splitlines()[1:] if self.shows_head else []
        return dict(line.split(": ", 1) for line in lines)


def matches(expected: Any, found: Any) -> bool:
    """Whether an answer is the one shown; `…` stands for anything, also for a part of a text."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(matches(expected[name], found[name]) for name in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(matches, expected, found))
    if isinstance(expected, str) and ANYTHING in expected:
        pattern = ".*".join(map(re.escape, expected.split(ANYTHING)))
        return expected == ANYTHING or re.fullmatch(pattern, str(found), re.DOTALL) is not None
    return type(expected) is type(found) and expected == found


def given_by(body: Any) -> dict[str, str]:
    parts = [body.get("data"), body.get("meta")] if isinstance(body, dict) else []
    return {GIVEN[name]: part[name] for part in parts if isinstance(part, dict) for name in GIVEN.keys() & part.keys()}


@contextmanager
def running_payment() -> Iterator[None]:
    """Another request holds the key `running` of the administrator."""
    administrator = User.objects.get(email="admin@example.com")
    parameters = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    with psycopg.connect(**parameters) as other:
        key = idempotency.IdempotencyKey(administrator.pk, "POST /payments", "running", b"")
        other.execute("SELECT pg_advisory_xact_lock(%s)", [key.lock_number])
        yield


@contextmanager
def fault_of_ours() -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("config.api.viewsets.ResourceViewSet.respond_created", fail)
        yield


# Errors that no request makes by itself: what has to be the case, by the heading under which they are shown.
SITUATIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "VERSION_RETIRED": lambda: time_machine.travel("2028-12-01T00:00:00Z"),
    "IDEMPOTENCY_IN_PROGRESS": running_payment,
    "RATE_LIMITED": lambda: override_settings(RATE_LIMIT_PRINCIPAL=1),
    "INTERNAL_ERROR": fault_of_ours,
    "SERVICE_UNAVAILABLE": database_away,
}
