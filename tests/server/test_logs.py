"""What clients can have the service write into its log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.wire import error_of, send

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """What was written on standard error since the last look, as the settings configure it."""
    (handler,) = [one for one in logging.getLogger().handlers if one.name == "standard_error"]
    stream = io.StringIO()
    monkeypatch.setattr(handler, "emit", lambda record: stream.write(f"{handler.format(record)}\n"))

    def take() -> list[dict[str, Any]]:
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
        return written

    return take


def test_foreign_host_is_a_line_without_a_trace(db: None, lines: Lines) -> None:
    error_of(send("GET", "/api/v2/users", headers={"Host": "evil.example"}), 400, "VALIDATION_ERROR")
    (line,) = lines()
    assert line["logger"] == "django.security.DisallowedHost"
    assert "evil.example" in line["message"]
    assert line["request_id"]
    assert "exception" not in line


def test_fault_is_told_with_its_trace(lines: Lines) -> None:
    try:
        raise ValueError
    except ValueError:
        logging.getLogger("config.api.exceptions").exception("a fault")
    assert ["ValueError" in line["exception"] for line in lines()] == [True]
