"""How many requests may wait in the fast lane, and which leave it."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection

from config.server import fast_lane
from config.server.balance import Balance, Loads
from config.server.draining import Drain
from config.server.fast_lane import MAX_BATCH, MAX_WAITING, FastLane
from config.server.lanes import MAX_DROPPED, SECONDS_BETWEEN_SWEEPS, SECONDS_OF_A_STALL, SECONDS_TO_WATCH, Lanes
from config.server.queues import Task
from config.server.readiness import probe
from config.server.reception import Reception

SECONDS_OF_A_TASK = 0.002


@pytest.fixture
def lane(settings: Any) -> Iterator[FastLane]:
    settings.FAST_PATH = False
    loop = asyncio.new_event_loop()
    yield FastLane(loop, lambda task: time.sleep(SECONDS_OF_A_TASK), Reception(loop))
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
    assert lane.has_room()
    put(lane, 1)
    assert not lane.has_room()


def test_queue_that_stays_is_as_long_as_what_is_answered_soon(lane: FastLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_lane, "SECONDS_OF_A_BURST", 0.2)
    put(lane, 500)
    run_batches(lane, 10)
    # 340 wait, for about 0.7 s.
    assert not lane.has_room()
    run_batches(lane, 20)
    # 20 wait.
    assert lane.has_room()
    run_batches(lane, 2)
    # From now on it is a burst again.
    put(lane, 300)
    run_batches(lane, 1)
    assert lane.has_room()


def test_what_a_proxy_passes_on_waits_longer(lane: FastLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_lane, "SECONDS_OF_A_BURST", 0.1)
    put(lane, 20 * MAX_BATCH + 250)
    run_batches(lane, 20)
    # 250 wait, for about 0.5 s.
    assert not lane.has_room()
    assert lane.has_room(is_passed_on=True)
    put(lane, MAX_WAITING - 250)
    assert not lane.has_room(is_passed_on=True)


def test_what_a_proxy_passes_on_does_not_wait_in_vain(lane: FastLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_lane, "SECONDS_OF_A_BURST", 0.1)
    monkeypatch.setattr(lane, "_run", lambda task: time.sleep(5 * SECONDS_OF_A_TASK))
    put(lane, 20 * MAX_BATCH + 200)
    # A batch of such long tasks is shorter, too.
    while len(lane.queue) > 200:
        run_batches(lane, 1)
    # 200 wait, for about two seconds.
    assert not lane.has_room(is_passed_on=True)


@pytest.mark.parametrize("has_waited", [True, False], ids=["it waited", "the loop had turns"])
def test_batch_that_is_long_by_turns_of_the_loop_has_not_waited_for_a_lock(lane: FastLane, has_waited: bool) -> None:
    turns: Any = SimpleNamespace(seconds=5.0, seconds_away=5.0)

    def run(task: object) -> None:
        time.sleep(0.03)
        turns.seconds_away += 0.0 if has_waited else 10.0
        lane.note_wait()

    lane.turns, lane._run = turns, run
    put(lane, 1)
    run_batches(lane, 1)
    assert lane.has_waited is has_waited


class Arrivals:
    """Tasks that arrive at a lane, and the sizes of the batches they are run in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.lane: Any = None
        run = FastLane._run_batch

        def run_batch(lane: FastLane, tasks: Any) -> None:
            self.sizes.append(len(tasks))
            run(lane, tasks)

        monkeypatch.setattr(FastLane, "_run_batch", run_batch)

    async def send(self, *delays: float) -> list[float]:
        """Sends a task after each of the delays. Returns how long each of them took."""
        return await asyncio.gather(*map(self._send_one, range(len(delays)), delays))

    async def _send_one(self, number: int, delay: float) -> float:
        await asyncio.sleep(delay)
        task: Any = SimpleNamespace(caller=number, begin=lambda: None, waiting=None, is_done=False)

        def finish() -> None:
            task.is_done = True
            if task.waiting and not task.waiting.done():
                task.waiting.set_result(None)

        task.finish = finish
        began = time.monotonic()
        await self.lane.run(task)
        return time.monotonic() - began


def test_batch_waits_for_those_whom_the_last_one_answered_and_for_nobody_in_vain_twice(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.FAST_PATH = False
    monkeypatch.setattr(fast_lane, "SECONDS_TO_GATHER", 0.2)
    monkeypatch.setattr(fast_lane, "SECONDS_TO_RETURN", 0.1)
    arrivals = Arrivals(monkeypatch)

    async def arrive() -> None:
        loop = asyncio.get_running_loop()
        arrivals.lane = FastLane(loop, lambda task: None, Reception(loop))
        await arrivals.send(0, 0, 0, 0)
        # All four come back, one of them later: they are one batch again.
        assert max(await arrivals.send(0, 0, 0, 0.03)) < 0.15
        # Two do not: they are waited for once.
        assert min(await arrivals.send(0, 0)) >= 0.19
        assert max(await arrivals.send(0, 0)) < 0.15
        # Nobody is waited for where nobody was answered a moment ago.
        await arrivals.send(0, 0, 0, 0)
        await asyncio.sleep(0.11)
        assert max(await arrivals.send(0)) < 0.15

    asyncio.run(arrive())
    assert arrivals.sizes == [4, 4, 2, 2, 4, 1]


@pytest.mark.parametrize(("silence", "leaves"), [(0.2, True), (0.8, False)], ids=["answers", "may be away"])
def test_reads_leave_for_the_slow_lane_where_the_database_answers_others(
    monkeypatch: pytest.MonkeyPatch, silence: float, leaves: bool
) -> None:
    loop = asyncio.new_event_loop()
    lanes = Lanes(None, loop, None, Reception(loop), Balance(Loads(1), 0, Drain()))
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


def test_those_whose_clients_leave_at_once_are_dropped_a_few_at_a_time_and_never_run() -> None:
    left, ended, run, turns = asyncio.Event(), [], [], []

    async def wait(lanes: Lanes, number: int) -> None:
        task = Task({"REQUEST_METHOD": "GET"}, SimpleNamespace(client_disconnect=left.wait), number)
        await lanes._fast.run(task)
        ended.append(task)

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        lanes = Lanes(None, loop, None, Reception(loop), Balance(Loads(1), 0, Drain()))
        lanes._fast._run = lambda task: lanes._run_fast(task) if task.has_left else run.append(task)
        # As beside a batch that takes long.
        lanes._fast._is_busy = True
        waiting = [asyncio.create_task(wait(lanes, number)) for number in range(5 * MAX_DROPPED)]
        await asyncio.sleep(SECONDS_TO_WATCH + 2 * SECONDS_BETWEEN_SWEEPS)
        left.set()
        while lanes._fast.queue:
            before = len(lanes._fast.queue)
            await asyncio.sleep(0)
            turns.append(before - len(lanes._fast.queue))
            if len(lanes._fast.queue) == 2 * MAX_DROPPED:
                # Their turn comes before they are dropped.
                lanes._fast._begin_batch()
        await asyncio.gather(*waiting)

    asyncio.run(leave())
    assert (len(ended), run) == (5 * MAX_DROPPED, [])
    assert max(turns) <= MAX_DROPPED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("hangs", [False, True], ids=["it has just begun", "it hangs"])
def test_of_a_batch_that_is_long_only_a_statement_that_hangs_is_cut(
    monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    monkeypatch.setattr("config.server.lanes.MAX_SECONDS_OF_A_BATCH", 0.2)
    loop = asyncio.new_event_loop()
    lanes = Lanes(None, loop, None, Reception(loop), Balance(Loads(1), 0, Drain()))
    own = connection.copy()
    own.inc_thread_sharing()
    own.ensure_connection()
    monkeypatch.setattr(lanes, "_connections", [own])
    monkeypatch.setattr(lanes._fast, "_began", time.monotonic() - 5)

    def sleep() -> bool:
        try:
            with own.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(0.6)")
        except OperationalError:
            return True
        return False

    with ThreadPoolExecutor(1) as pool:
        lanes._cut_hanging_connection()
        is_cut = pool.submit(sleep)
        time.sleep(0.1)
        for _ in range(20 if hangs else 1):
            lanes._cut_hanging_connection()
            time.sleep(0.02)
        assert is_cut.result() is hangs
    own.close()
    loop.close()
