"""What clients can have the service write into its log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from config.server import logs
from tests.api.wire import error_of, send

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """What was written on standard error since the last look, as the settings configure it."""
    (handler,) = [one for one in logging.getLogger().handlers if one.name == "standard_error"]
    (only_filter,) = handler.filters
    monkeypatch.setattr(only_filter, "_passed", {})
    stream = io.StringIO()
    monkeypatch.setattr(handler, "emit", lambda record: stream.write(f"{handler.format(record)}\n"))

    def take() -> list[dict[str, Any]]:
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
        return written

    return take


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(logs, "monotonic", lambda: now[0])
    return now


def ask_as_another_host(times: int) -> None:
    for _ in range(times):
        error_of(send("GET", "/api/v2/users", headers={"Host": "evil.example"}), 400, "VALIDATION_ERROR")


def test_foreign_hosts_are_one_line_a_second_without_a_trace(db: None, lines: Lines, clock: list[float]) -> None:
    ask_as_another_host(20)
    (line,) = lines()
    assert (line["logger"], line["left_out"]) == ("django.security.DisallowedHost", 0)
    assert "evil.example" in line["message"]
    assert line["request_id"]
    assert "exception" not in line
    clock[0] += 0.9
    ask_as_another_host(1)
    assert lines() == []
    clock[0] += 0.1
    ask_as_another_host(3)
    assert [line["left_out"] for line in lines()] == [20]


def test_refusals_of_different_kinds_do_not_silence_each_other(lines: Lines, clock: list[float]) -> None:
    for kind in ("csrf", "DisallowedHost", "csrf"):
        logging.getLogger(f"django.security.{kind}").warning("refused")
    assert [line["logger"] for line in lines()] == ["django.security.csrf", "django.security.DisallowedHost"]


def test_faults_are_told_each_with_its_trace(lines: Lines, clock: list[float]) -> None:
    for _ in range(3):
        try:
            raise ValueError
        except ValueError:
            logging.getLogger("config.api.exceptions").exception("a fault")
    assert [("ValueError" in line["exception"], "left_out" in line) for line in lines()] == [(True, False)] * 3
