"""The event loop goes on in the middle of a batch that takes long."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection

from config.fastpath import loop_turns
from config.fastpath.loop_turns import SECONDS_WITHOUT_LOOP, LoopTurns
from config.fastpath.postgresql import loop_waits
from config.fastpath.postgresql.loop_waits import LoopWaits
from config.server.fast_lane import FastLane, run_beside_loop, run_together
from config.server.reception import Reception


def keep_busy(seconds: float, clock: Callable[[], float]) -> None:
    end = clock() + seconds
    while clock() < end:
        pass


async def run_batch(tasks: int, seconds_of_a_task: float) -> tuple[list[float], FastLane]:
    """Runs a batch, and has a callback that waits for the loop all along. Returns when it was called."""
    loop, calls = asyncio.get_running_loop(), [time.monotonic()]
    began: list[bool] = []

    def work(task: object) -> None:
        assert asyncio._get_running_loop() is None
        began.append(True)
        keep_busy(seconds_of_a_task, time.monotonic)

    def note() -> None:
        assert asyncio.get_running_loop() is loop
        calls.append(time.monotonic())
        if len(began) < tasks:
            loop.call_soon(note)

    lane, ended = FastLane(loop, work, Reception(loop)), asyncio.Event()
    for number in range(tasks):
        task: Any = SimpleNamespace(caller=number, begin=lambda: None, finish=ended.set)
        lane.queue.put(task)
    loop.call_soon(note)
    lane._begin_batch()
    await ended.wait()
    return calls, lane


def test_loop_goes_on_between_the_tasks_of_a_long_batch() -> None:
    calls, lane = asyncio.run(run_batch(10, SECONDS_WITHOUT_LOOP))
    # After at least two tasks each time; on a busy machine after more.
    assert len(calls) > 3
    assert lane.turns
    assert not lane.turns.is_on
    assert 0 < lane.turns.seconds < 0.1


def test_loop_stands_still_for_a_short_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Short, also on a busy machine.
    monkeypatch.setattr(loop_turns, "SECONDS_WITHOUT_LOOP", 60.0)
    calls, lane = asyncio.run(run_batch(3, 0.0))
    assert len(calls) == 2
    assert lane.turns
    assert lane.turns.seconds == 0


def test_what_the_loop_takes_meanwhile_is_not_counted_as_the_time_of_the_batch() -> None:
    async def run() -> float:
        loop = asyncio.get_running_loop()

        loop.call_soon(keep_busy, 0.05, time.thread_time)
        _, lane = await run_batch(5, SECONDS_WITHOUT_LOOP)
        return lane._seconds

    # A fifth of the time of one task (FastLane._run_and_measure).
    assert asyncio.run(run()) < SECONDS_WITHOUT_LOOP * 0.2 * 1.8


def test_batch_does_not_wait_for_a_lock_while_the_loop_that_it_gave_way_to_sleeps() -> None:
    async def run() -> FastLane:
        asyncio.get_running_loop().call_soon(time.sleep, 0.05)
        _, lane = await run_batch(5, SECONDS_WITHOUT_LOOP)
        return lane

    lane = asyncio.run(run())
    assert lane.turns
    assert lane.turns.seconds < 0.05 <= lane.turns.seconds_away


def test_what_the_loop_computes_while_a_batch_waits_for_the_database_is_no_wait(db: None) -> None:
    async def run() -> LoopTurns:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        turns = LoopTurns(loop, loop.call_soon)
        with psycopg.connect(**connection.get_connection_params()) as waiting:
            LoopWaits(turns).attach(waiting)

            def work() -> None:
                waiting.execute("SELECT pg_sleep(0.1)")
                ended.set()

            loop.call_later(0.02, keep_busy, 0.05, time.thread_time)
            run_beside_loop(partial(run_together, [work], turns))
            await ended.wait()
        return turns

    turns = asyncio.run(run())
    assert turns.seconds == turns.seconds_away
    assert 0.05 <= turns.seconds_away < 0.08


def test_loop_goes_on_while_a_batch_receives_megabytes(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than the server takes to have some more: it is never waited for in the loop.
    monkeypatch.setattr(loop_waits, "MILLISECONDS_TO_BLOCK", 10_000)

    async def run() -> int:
        loop, ended, calls = asyncio.get_running_loop(), asyncio.Event(), 0
        turns = LoopTurns(loop, loop.call_soon)
        with psycopg.connect(**connection.get_connection_params()) as receiving:
            LoopWaits(turns).attach(receiving)

            def note() -> None:
                nonlocal calls
                calls += 1
                if not ended.is_set():
                    loop.call_soon(note)

            def work() -> None:
                turns.begin()
                receiving.execute("SELECT repeat('x', 100000) FROM generate_series(1, 500)")
                ended.set()

            loop.call_soon(note)
            run_beside_loop(partial(run_together, [work], turns))
            await ended.wait()
        return calls

    assert asyncio.run(run()) > 3


def test_what_is_handed_over_begins_in_the_same_turn() -> None:
    begun: list[float] = []

    async def note() -> None:
        begun.append(time.monotonic())

    async def run() -> float:
        loop = asyncio.get_running_loop()
        # As another thread does it (granian._loops).
        loop.call_soon(loop.create_task, note())
        await run_batch(6, SECONDS_WITHOUT_LOOP)
        return time.monotonic()

    ended = asyncio.run(run())
    # It was begun after the first of the six tasks, and not after the second.
    assert ended - begun[0] > 4.5 * SECONDS_WITHOUT_LOOP


def test_flood_of_callbacks_does_not_keep_a_batch_from_going_on() -> None:
    async def run() -> tuple[float, float]:
        loop = asyncio.get_running_loop()

        def again() -> None:
            keep_busy(0.0001, time.thread_time)
            loop.call_soon(again)

        for _ in range(500):
            loop.call_soon(again)
        began = time.thread_time()
        _, lane = await run_batch(16, SECONDS_WITHOUT_LOOP)
        assert lane.turns
        return time.thread_time() - began, lane.turns.seconds

    whole, of_loop = asyncio.run(run())
    # The last turn is one that the batch has not caught up with yet. Without a limit it would be sixteen turns.
    assert of_loop < 0.75 * whole
