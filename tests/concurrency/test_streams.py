"""Streams beside writers and beside each other: the one moment that they show, and what they hold."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from django.db import InternalError, OperationalError, connection
from django.test import override_settings

from config.api import streams
from config.postgresql.transactions import get_lock_number
from tests.conftest import Caller, connect_elsewhere, end_connection, own_session, with_key
from tests.service import wait_for
from users import services

NDJSON = "application/x-ndjson"


def fetch(caller: Caller, path: str) -> Any:
    return caller.fetch("GET", path, Accept=NDJSON)


def rows_of(response: Any) -> list[Any]:
    assert response.status_code == 200, response.getvalue()
    return [json.loads(line) for line in response.getvalue().splitlines()]


def add_users(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO users_user (name, email, role, status, password, created_at, updated_at)"
            " SELECT 'N', 'n' || i || '@example.com', 'user', 'active', '', now(), now()"
            " FROM generate_series(1, %s) AS i",
            [count],
        )


@pytest.fixture
def many(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """An administrator among users who are sent in several pieces."""
    monkeypatch.setattr(streams, "FIRST_BYTES", 1)
    monkeypatch.setattr(streams, "ROWS_OF_A_PIECE", 4)
    caller = with_key(services.create(name="A", email="a@example.com", role="admin", password=None))
    add_users(40)
    return caller


def test_stream_shows_one_moment(many: Caller) -> None:
    response = fetch(many, "/api/v2/users?fields=email")
    pieces = iter(response)
    first = next(pieces)
    with connect_elsewhere() as other:
        other.execute("UPDATE users_user SET email = 'x' || email WHERE id > 5")
        other.execute("DELETE FROM users_user WHERE email LIKE 'xn3%'")
    rows = [json.loads(line) for line in (first + b"".join(pieces)).splitlines()]
    response.close()
    assert len(rows) == int(response.headers["X-Total-Count"]) == 41
    assert not any(row["email"].startswith("x") for row in rows)
    assert not connection.in_atomic_block


def test_user_has_one_stream_at_a_time_and_others_have_theirs(many: Caller) -> None:
    with connect_elsewhere() as other:
        number = get_lock_number(f"stream {many.user.pk}")
        other.execute("SELECT pg_advisory_xact_lock(%s)", [number])
        refused = many.get("/api/v2/users", Accept=NDJSON)
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (429, "RATE_LIMITED", "5")
        stranger = with_key(services.create(name="S", email="s@example.com", role="admin", password=None))
        assert len(rows_of(fetch(stranger, "/api/v2/users"))) == 42
    assert len(rows_of(fetch(many, "/api/v2/users"))) == 42


def test_stream_that_nobody_wants_any_more_gives_everything_back(many: Caller) -> None:
    for _ in range(streams.MAX_STREAMS_OF_A_PROCESS + 1):
        response = fetch(many, "/api/v2/users")
        next(iter(response))
        response.close()
        assert not connection.in_atomic_block


@own_session
def test_database_that_goes_away_fails_the_iteration(many: Caller) -> None:
    response = fetch(many, "/api/v2/users")
    pieces = iter(response)
    next(pieces)
    end_connection()
    with pytest.raises(OperationalError):
        list(pieces)
    # And everything was given back.
    assert len(rows_of(fetch(many, "/api/v2/users"))) == 41


@own_session
def test_stream_ends_when_its_time_is_over(many: Caller) -> None:
    with override_settings(MAX_STREAM_SECONDS=1):
        pieces = iter(fetch(many, "/api/v2/users"))
        next(pieces)
        with connect_elsewhere() as other:
            wait_for(lambda: not is_alive(other, connection.connection.info.backend_pid))
        with pytest.raises(InternalError, match="transaction timeout"):
            list(pieces)


def is_alive(other: psycopg.Connection[Any], pid: int) -> bool:
    other.commit()
    return bool(other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone())
