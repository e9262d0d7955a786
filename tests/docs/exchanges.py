"""Runs the exchanges that the documentation shows: a curl command after `$`, then what it prints, in a situation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import connection
from django.test import override_settings

from config.api.writing import idempotency
from config.site import documentation, examples
from config.site.examples import Exchange
from tests.api.test_failures import database_away
from tests.docs.languages import Language
from tests.service import CHECKOUT
from users.models import User

GUIDE = Path(documentation.GUIDE_FOLDER)
_PART = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```(?P<info>\w*)\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)
ANYTHING = "…"
# What an answer gives, by the names by which the next commands call it.
GIVEN = {
    "access_token": "ACCESS_TOKEN",
    "refresh_token": "REFRESH_TOKEN",
    "key": "NEW_KEY",
    "nextCursor": "NEXT_CURSOR",
}


def read_blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """The blocks of a page: the heading above each, its language and its text."""
    heading = ""
    file = CHECKOUT / "README.md" if page == "README" else GUIDE / f"{page}.md"
    for part in _PART.finditer(file.read_text()):
        heading = part["heading"] or heading
        if part["block"]:
            yield heading.strip("`"), part["info"], part["block"]


PAGES_WITH_EXCHANGES = [
    page for page in documentation.PAGES if any(info == "console" for _, info, _ in read_blocks(page))
]
PAGES_WITH_FUNCTIONS = ("import-users", "walking-lists", "whole-lists", "retries", "polling", "events")


def check_exchanges(page: str, language: Language, variables: dict[str, str], request: pytest.FixtureRequest) -> None:
    """Runs every command of a page. Fails where it prints something else than is shown."""
    if page == "errors":
        request.getfixturevalue("one_minute")
    for heading, info, block in read_blocks(page):
        if info != "console":
            continue
        for exchange in examples.read_session(block.replace("http://127.0.0.1:8000", variables["ORIGIN"])):
            if not exchange.is_call:
                continue
            with SITUATIONS.get(heading, nullcontext)():
                printed = list(language.call(exchange, variables))
            if exchange.has_body:
                (body,) = printed.pop()
                assert matches(json.loads(exchange.body), body), (exchange.command, body)
                variables |= given_by(body)
            head = list(printed.pop()) if printed else []
            headers = read_headers(exchange)
            assert matches([*read_status(exchange), *headers.values()], head), (exchange.command, head)
            if "ETag" in headers and examples.parse_command(exchange.command).method == "GET":
                variables["ETAG"] = head[1 + list(headers).index("ETag")]
            assert not printed


def read_status(exchange: Exchange) -> list[int]:
    """The status, where it is shown."""
    return [int(exchange.head.split()[1])] if exchange.head else []


def read_headers(exchange: Exchange) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in exchange.head.splitlines()[1:] if line)


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
