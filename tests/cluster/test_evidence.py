"""What the nodes have logged of an answer that nobody should get, or while a reader had no rows, is told."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.evidence import Evidence, Refusal

LINES = [
    (10.0, {"level": "ERROR", "request_id": "a", "message": "boom"}),
    (10.1, {"level": "ERROR", "logger": "request", "request_id": "a", "method": "POST", "status": 500}),
    (10.2, {"level": "CRITICAL", "request_id": None, "message": "A task failed"}),
    (10.3, {"level": "INFO", "logger": "request", "request_id": "b", "method": "GET", "status": 200}),
    (90.0, {"level": "WARNING", "request_id": None, "message": "later"}),
]


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    since = time.time() - time.monotonic()
    log = tmp_path / "127.0.3.1.log"
    written = [json.dumps({"time": datetime.fromtimestamp(at + since, UTC).isoformat(), **rest}) for at, rest in LINES]
    log.write_text("\n".join(["Address: http://127.0.3.1", *written, '{"time": "cut off']))
    return Evidence([log])


def test_an_answer_is_told_by_the_lines_of_its_request(evidence: Evidence) -> None:
    told = [*evidence.of_answer({"request_id": "a", "began": 9.9, "ended": 10.1})]
    assert ["boom" in line or '"status": 500' in line for line in told] == [True, True]


def test_an_answer_without_a_name_is_told_by_what_failed_meanwhile(evidence: Evidence) -> None:
    told = "\n".join(evidence.of_answer({"request_id": None, "began": 9.9, "ended": 10.3}))
    assert "boom" in told
    assert "A task failed" in told
    assert "later" not in told


def test_a_gap_is_told_by_what_the_reader_was_told_and_what_failed_meanwhile(evidence: Evidence) -> None:
    refusals = [Refusal(8.0, 9.0, "before"), Refusal(10.0, 11.0, "/api/v2/users/1: 503")]
    told = "\n".join(evidence.of_gap(9.9, 12.0, refusals))
    assert "No rows from 9.90 to 12.00" in told
    assert "/api/v2/users/1: 503" in told
    assert "A task failed" in told
    assert "before" not in told
    assert '"status": 200' not in told
