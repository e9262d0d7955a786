"""How many requests may wait in the fast lane, and which leave it."""

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from config.server import fast_lane
from config.server.fast_lane import MAX_BATCH, MAX_WAITING, FastLane
from config.server.lanes import SECONDS_OF_A_STALL, Lanes
from config.server.readiness import probe

SECONDS_OF_A_TASK = 0.002


@pytest.fixture
def lane(settings: Any) -> Iterator[FastLane]:
    settings.FAST_PATH = False
    loop = asyncio.new_event_loop()
    yield FastLane(loop, lambda task: time.sleep(SECONDS_OF_A_TASK))
    loop.close()


def put(lane: FastLane, count: int) -> None:
    for number in range(count):
        task: Any = SimpleNamespace(caller=number, begin=lambda: None, finish=lambda: None)
        lane.queue.put(task)


def run_batches(lane: FastLane, count: int) -> None:
    for _ in range(count):
        lane._begin_batch()


def test_burst_may_wait_until_the_queue_is_full(lane: FastLane) -> None:
    put(lane, MAX_WAITING - 1)
    run_batches(lane, 1)
    put(lane, MAX_BATCH)
    assert lane.has_room
    put(lane, 1)
    assert not lane.has_room


def test_queue_that_stays_is_as_long_as_what_is_answered_soon(lane: FastLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_lane, "SECONDS_OF_A_BURST", 0.2)
    put(lane, 500)
    run_batches(lane, 10)
    # 340 wait, for about 0.7 s.
    assert not lane.has_room
    run_batches(lane, 20)
    # 20 wait.
    assert lane.has_room
    run_batches(lane, 2)
    # From now on it is a burst again.
    put(lane, 300)
    run_batches(lane, 1)
    assert lane.has_room


@pytest.mark.parametrize(("silence", "leaves"), [(0.2, True), (0.8, False)], ids=["answers", "may be away"])
def test_reads_leave_for_the_slow_lane_where_the_database_answers_others(
    monkeypatch: pytest.MonkeyPatch, silence: float, leaves: bool
) -> None:
    loop = asyncio.new_event_loop()
    lanes = Lanes(None, loop, None)
    slow: Any = SimpleNamespace(queue=(), free=1, may_run=lambda caller: True)
    monkeypatch.setattr(lanes, "_slow", slow)
    task: Any = SimpleNamespace(caller=1, environ={"REQUEST_METHOD": "GET"}, needs_slow_lane=False, finish=lambda: None)
    lanes._fast.queue.put(task)
    now = time.monotonic()
    monkeypatch.setattr(lanes._fast, "_began", now - SECONDS_OF_A_STALL)
    monkeypatch.setattr(probe, "_answered", now - silence)
    lanes._relieve_reads()
    assert task.needs_slow_lane is leaves
    loop.close()
