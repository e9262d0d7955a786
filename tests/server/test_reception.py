"""What arrives at the same time is received a few requests in a turn of the loop."""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from config.server.lanes import Lanes
from config.server.reception import MAX_RECEIVED, SECONDS_OF_A_TURN, Reception
from config.server.rsgi import Application
from tests.fastpath.test_loop_turns import keep_busy
from tests.server.received import Received


async def arrive(reception: Reception, receive: Callable[[], object]) -> None:
    if not reception.admit():
        await reception.wait_for_turn()
    receive()


def test_few_are_received_in_a_turn_and_in_their_order() -> None:
    async def arrive_together() -> None:
        loop, received, counts = asyncio.get_running_loop(), list[int](), list[int]()
        reception = Reception(loop)
        tasks: list[asyncio.Task[None]] = []

        def arrive_next(count: int) -> None:
            numbers = range(len(tasks), len(tasks) + count)
            tasks.extend(loop.create_task(arrive(reception, partial(received.append, number))) for number in numbers)

        # Many at once, and then some in each turn, who come before those that were let in go on.
        arrive_next(5 * MAX_RECEIVED)
        while len(received) < len(tasks):
            await asyncio.sleep(0)
            counts.append(len(received))
            if len(tasks) < 8 * MAX_RECEIVED:
                arrive_next(MAX_RECEIVED // 2)
        assert received == list(range(len(tasks)))
        assert max(after - before for before, after in zip([0, *counts], counts, strict=False)) <= MAX_RECEIVED
        await asyncio.sleep(0)
        # Afterwards, nobody waits who comes alone.
        assert reception.admit()

    asyncio.run(arrive_together())


def test_who_asks_when_nobody_arrives_any_more_is_let_in() -> None:
    async def arrive_alone() -> None:
        # As one that was not let in, and whose body came only after all others were received.
        await asyncio.wait_for(Reception(asyncio.get_running_loop()).wait_for_turn(), 1)

    asyncio.run(arrive_alone())


def test_a_long_turn_keeps_nobody_from_being_received() -> None:
    async def arrive_together() -> None:
        loop, received, turns = asyncio.get_running_loop(), list[int](), 0
        reception = Reception(loop)
        receive = partial(received.append, 0)
        tasks = [loop.create_task(arrive(reception, receive)) for _ in range(40 * MAX_RECEIVED)]
        while len(received) < len(tasks):
            await asyncio.sleep(0)
            keep_busy(10 * SECONDS_OF_A_TURN, time.thread_time)
            turns += 1
        assert turns < 10

    asyncio.run(arrive_together())


def test_what_is_next_waits_for_those_that_arrived_before_it_and_for_no_others() -> None:
    async def arrive_together() -> None:
        loop, received = asyncio.get_running_loop(), list[int]()
        reception = Reception(loop)

        def arrive_next(first: int) -> list[asyncio.Task[None]]:
            numbers = range(first, first + 4 * MAX_RECEIVED)
            return [loop.create_task(arrive(reception, partial(received.append, number))) for number in numbers]

        before = arrive_next(0)
        called: asyncio.Future[list[int]] = loop.create_future()
        # In the turn in which all of them ask to be let in.
        loop.call_soon(reception.call_soon, lambda: called.set_result(received.copy()))
        after = arrive_next(1000)
        found = await called
        assert found[: len(before)] == list(range(len(before)))
        # Those that were let in, in the same turn.
        assert len(found) <= len(before) + MAX_RECEIVED
        await asyncio.gather(*before, *after)

    asyncio.run(arrive_together())


@pytest.fixture
def application() -> Iterator[tuple[Application, asyncio.AbstractEventLoop]]:
    loop, made = asyncio.new_event_loop(), Application()
    made.__rsgi_init__(loop)
    yield made, loop
    loop.close()


# What is no short answer waits as all others do, whatever its address is.
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("headers", "passes"),
    [({}, True), ({"accept": "text/html"}, False), ({"authorization": "Basic eDp5"}, False)],
    ids=["alone", "a page", "with a password"],
)
def test_health_does_not_wait_for_those_that_arrived_before_it(
    application: tuple[Application, asyncio.AbstractEventLoop],
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    passes: bool,
) -> None:
    made, loop = application
    received: list[str] = []
    run = Lanes.run

    async def note(lanes: Lanes, environ: Any, protocol: Any) -> None:
        received.append(environ["PATH_INFO"])
        await run(lanes, environ, protocol)

    class Answered(Received):
        def response_bytes(self, *arguments: Any) -> None:
            """A page is no JSON."""

    monkeypatch.setattr(Lanes, "run", note)
    requests = [Answered("/api/v1/nothing") for _ in range(4 * MAX_RECEIVED)] + [Answered("/health/live", **headers)]

    async def receive_all() -> None:
        await asyncio.gather(*(made.__rsgi__(request, request) for request in requests))

    loop.run_until_complete(receive_all())
    assert len(received) == len(requests)
    # In the turn in which all of them arrive, or as the last one.
    assert received.index("/health/live") == (MAX_RECEIVED if passes else len(requests) - 1)
