"""What arrives at the same time is received a few requests in a turn of the loop."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from config.server.reception import MAX_RECEIVED, Reception
from config.server.rsgi import Application
from tests.server.received import Received


async def arrive(reception: Reception, receive: Callable[[], object]) -> None:
    if not reception.admit():
        await reception.wait_for_turn()
    receive()


def test_few_are_received_in_a_turn_and_in_their_order() -> None:
    async def arrive_together() -> None:
        loop, received, counts = asyncio.get_running_loop(), list[int](), list[int]()
        reception = Reception(loop)
        tasks = [
            loop.create_task(arrive(reception, partial(received.append, number))) for number in range(10 * MAX_RECEIVED)
        ]
        while len(received) < len(tasks):
            await asyncio.sleep(0)
            counts.append(len(received))
        assert received == list(range(len(tasks)))
        assert max(after - before for before, after in zip([0, *counts], counts, strict=False)) <= MAX_RECEIVED
        # Afterwards, nobody waits who comes alone.
        assert reception.admit()

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


@pytest.mark.django_db
def test_health_does_not_wait_for_those_that_arrived_before_it(
    application: tuple[Application, asyncio.AbstractEventLoop],
) -> None:
    made, loop = application
    answered: list[str] = []

    class Noted(Received):
        def response_bytes(self, *arguments: Any) -> None:
            super().response_bytes(*arguments)
            answered.append(self.path)

    requests = [Noted("/api/v1/nothing") for _ in range(4 * MAX_RECEIVED)] + [Noted("/health/live")]

    async def receive_all() -> None:
        await asyncio.gather(*(made.__rsgi__(request, request) for request in requests))

    loop.run_until_complete(receive_all())
    assert len(answered) == len(requests)
    assert answered.index("/health/live") < MAX_RECEIVED
