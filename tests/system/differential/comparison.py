"""The same requests on the fast path and on the reference, each from the same state of the database."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from unittest.mock import patch

from django.apps import apps
from django.db import connection
from django.test import Client, override_settings
from django.test.client import ClientHandler

from config.fastpath import views
from config.server.logs import NAME, log
from tests.conftest import REFERENCE, new_client
from tests.contract.world import SAFE, rolled_back

# Rows that a request adds get the ids behind this one, on both paths.
LAST_ID = 1_000_000
# Tables that a request may write. Not the row counts, whose slots depend on who else writes.
_APPS = ("users", "orders", "posts", "payments", "accounts", "config", "oauth2_provider")
_EXCLUDED = frozenset({"config_rowcount"})
# Columns with random values: salted hashes, tokens, secrets, the Request-Id in the audit trail, and the position of an
# event, which is made of ids of transactions.
_RANDOM = "{password,digest,refresh_digest,previous_digest,password_digest,access_id,request_id,secret,position}"

# In the line of a request: random, told by a header, or what the fast path is there for.
_DIFFERS = frozenset({"time", "request_id", "bytes", "duration_ms", "database_ms", "statements"})

# Headers that would hide all else in the message of a failure.
_CREDENTIALS = frozenset({"Authorization", "X-API-Key", "X-CSRFToken", "Cookie"})

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})")
# What the service adds to the present time at most: the life of a login.
_FURTHEST = timedelta(days=15)
_API_KEY = re.compile(r"urs_[\w-]+")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+|whsec_[\w+/]+=")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CURSOR = re.compile(r'(cursor=|(?:next|prev)Cursor":")[\w-]+')
# Headers that a page shows.
_SHOWN = re.compile(r"(?<=<dd>)[0-9a-f]{32}(?=</dd>)|(?<=<dt>ETag</dt><dd>)[^<]+|(?<=;t=)[0-9]+")
_WAIT = re.compile(r"again in [0-9]+ seconds")
# These call hooks of their own, with which the fast path does not deal.
ON_REFERENCE = (
    *("webhooks", "webhooks/<id>", "webhooks/<webhook_id>/rotations"),
    *("webhooks/<webhook_id>/deliveries", "webhooks/<webhook_id>/deliveries/<id>", "users/<user_id>/archive"),
)


@dataclass(frozen=True)
class Sent:
    """A request.

    Attributes:
        query: as it stands in the address.
        is_fast: whether the fast path must be taken.
        is_fault: whether a 500 is expected.
    """

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    is_fast: bool = True
    is_fault: bool = False

    def __str__(self) -> str:
        headers = {name: value for name, value in self.headers.items() if name not in _CREDENTIALS}
        return f"{self.method} {self.path}?{self.query} {headers} {self.body[:200]!r}"

    def send(self, client: Client) -> Outcome:
        headers = {"Content-Type": "application/json", **self.headers} if self.body else {**self.headers}
        with (
            patch.object(views, "get_response", wraps=views.get_response) as fast_path,
            patch.object(log, "add", wraps=log.add) as add,
        ):
            response: Any = client.generic(self.method, self.path, self.body, headers=headers, QUERY_STRING=self.query)
        logged = [json.loads(call.args[0]) for call in add.call_args_list]
        (of_request,) = [line for line in logged if line["logger"] == NAME]
        line = {name: value for name, value in of_request.items() if name not in _DIFFERS}
        content = b"".join(response)  # also of a stream
        return Outcome(response.status_code, dict(response.headers.items()), content, fast_path.called, line)


@dataclass(frozen=True)
class Outcome:
    """A response, whether it came by the fast path, and the line of the request in the log."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    was_fast: bool
    line: Mapping[str, Any]


def set_sequences(last_id: int) -> None:
    """Makes the next rows of all tables get the ids behind this one. No rollback takes it back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(oid::regclass, %s) FROM pg_class WHERE relkind = 'S'", [last_id])


@cache
def _full_stack() -> ClientHandler:
    """Django's handler alone, with all middlewares."""
    made = ClientHandler(enforce_csrf_checks=True)
    made.load_middleware()
    return made


def reference_client() -> Client:
    client = Client(raise_request_exception=False)
    client.handler = _full_stack()
    return client


class Comparison:
    """Sends requests on both paths, and leaves the database as it was."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        with connection.cursor() as cursor:
            cursor.execute("SELECT prefix FROM accounts_apikey")
            self._prefixes = {prefix for (prefix,) in cursor.fetchall()}
        self._rows = fetch_rows()

    def __call__(self, *requests: Sent) -> Sequence[Outcome]:
        """Sends requests one after the other, first all of them to the reference, then all on the fast path.

        Returns:
            what the reference answered.

        Raises:
            AssertionError: a response or an effect differs, or a request took the wrong path.
        """
        (expected, expected_effects), (actual, actual_effects) = self._send_both(requests)
        for index, (request, one, other) in enumerate(zip(requests, expected, actual, strict=True)):
            where = f"request {index} of {[str(each) for each in requests]}"
            assert (one.was_fast, other.was_fast) == (False, request.is_fast), where
            assert (one.status == 500) == request.is_fault, where
            differences = self._find_differences(request, one, other, is_first=index == 0)
            assert not differences, (differences, where)
        assert set(actual_effects) ^ set(expected_effects) == set(), [str(each) for each in requests]
        return expected

    def _send_both(self, requests: Sequence[Sent]) -> Any:
        """The outcomes and effects on the reference, and those on the fast path, both within one window of quotas."""
        while True:
            minute = time.time() // 60
            with override_settings(**REFERENCE):
                expected = self._send_all(requests, reference_client)
            actual = self._send_all(requests, new_client)
            if time.time() // 60 == minute:
                return expected, actual

    def _send_all(self, requests: Sequence[Sent], build_client: Any) -> tuple[list[Outcome], Sequence[str]]:
        with rolled_back():
            set_sequences(LAST_ID)
            outcomes = [request.send(build_client()) for request in requests]
            is_read = all(request.method in SAFE for request in requests)
            return outcomes, () if is_read else self._fetch_effects()

    def _fetch_effects(self) -> Sequence[str]:
        """The rows that are new, changed or gone, without what is never the same twice."""
        return sorted(_UUID.sub("<uuid>", self._mask(row)) for row in fetch_rows() ^ self._rows)

    def _find_differences(self, request: Sent, one: Outcome, other: Outcome, *, is_first: bool) -> dict[str, Any]:
        """What differs and should not, by name: the value of the reference, and that of the fast path."""
        if (one.status, one.headers, one.body, one.line) == (other.status, other.headers, other.body, other.line):
            return {}
        parts = [self._normalize(request, outcome, is_first=is_first) for outcome in (one, other)]
        names = parts[0].keys() | parts[1].keys()
        pairs = {name: tuple(part.get(name) for part in parts) for name in names}
        return {name: _excerpt(*pair) for name, pair in pairs.items() if pair[0] != pair[1]}

    def _normalize(self, request: Sent, outcome: Outcome, *, is_first: bool) -> dict[str, Any]:
        """The parts of an outcome, without times, secrets and what depends on them."""
        headers = {**outcome.headers}
        body = gzip.decompress(outcome.body) if headers.get("Content-Encoding") == "gzip" else outcome.body
        text = body.decode()
        masked = self._mask(text)
        if not is_first:
            # What was added before may be where a page ends.
            masked = _CURSOR.sub(r"\1<cursor>", masked)
        # Without a body nobody sees that a key or a session was just used, nor that a page shows the id of its request.
        is_page = headers.get("Content-Type", "").startswith("text/html")
        is_hidden = not outcome.body and ("/api-keys" in request.path or "/sessions" in request.path or is_page)
        if masked != text or is_hidden:
            headers |= {name: "<masked>" for name in ("ETag", "Content-Length") if name in headers}
        for name, value in headers.items():
            headers[name] = self._normalize_header(name, value, is_first=is_first)
        return {"status": outcome.status, "body": masked, "line": outcome.line, **headers}

    @staticmethod
    def _normalize_header(name: str, value: str, *, is_first: bool) -> str:
        match name:
            case "RateLimit":
                # The count is the same: both paths are within one window, and begin with the same counter.
                return re.sub("t=[0-9]+", "t=<seconds>", value)
            case "Request-Id":
                return re.sub("^[0-9a-f]{32}$", "<random>", value)
            case "Retry-After" | "Date":
                return f"<{name}>"
            case "Link" if not is_first:
                return _CURSOR.sub(r"\1<cursor>", value)
        return value

    def _mask(self, text: str) -> str:
        """A text without the times, keys and tokens that are made by the requests."""
        text = _TIME.sub(self._mask_time, text)
        text = _API_KEY.sub(lambda found: found[0] if found[0] in self._prefixes else "<key>", text)
        text = _SHOWN.sub("<shown>", _TOKEN.sub("<token>", text))
        return _WAIT.sub("again in <n> seconds", text)

    def _mask_time(self, found: re.Match[str]) -> str:
        is_new = self._started <= datetime.fromisoformat(found[0]) <= datetime.now(UTC) + _FURTHEST
        return "<time>" if is_new else found[0]


def _excerpt(*values: Any) -> Sequence[str]:
    """Two values from a little before the place where they begin to differ."""
    texts = [str(value) for value in values]
    same = next((index for index, pair in enumerate(zip(*texts, strict=False)) if len({*pair}) > 1), 0)
    start = max(0, same - 40)
    return [text[start : start + 120] for text in texts]


def fetch_rows() -> frozenset[str]:
    """All rows of the tables, as JSON."""
    with connection.cursor() as cursor:
        cursor.execute(_build_rows_query())
        return frozenset(row for (row,) in cursor.fetchall())


@cache
def _build_rows_query() -> str:
    models = [model for label in _APPS for model in apps.get_app_config(label).get_models()]
    tables = sorted({model._meta.db_table for model in models} - _EXCLUDED)
    rows = [f"SELECT '{table} ' || (to_jsonb(t) - '{_RANDOM}'::text[])::text FROM {table} t" for table in tables]  # noqa: S608 - of models
    return " UNION ALL ".join(rows)
