"""What ends when it takes too long, and what does not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from config.server.deadlines import Deadline

SECONDS = 0.05
Wait = Callable[[Awaitable[object]], Awaitable[object]]


def run(use: Callable[[Wait], Awaitable[object]]) -> object:
    async def main() -> object:
        return await use(Deadline(asyncio.get_running_loop(), SECONDS).wait_for)

    return asyncio.run(main())


async def answer(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "answer"


def test_what_ends_in_time_gives_its_result() -> None:
    assert run(lambda wait_for: wait_for(answer(SECONDS / 2))) == "answer"


def test_what_takes_too_long_is_cancelled_and_its_task_goes_on() -> None:
    ended = []

    async def take_long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def use(wait_for: Wait) -> object:
        with pytest.raises(TimeoutError):
            await wait_for(take_long())
        assert ended
        task = asyncio.current_task()
        assert task
        assert task.cancelling() == 0
        # What it waits for next has all of its time.
        return await wait_for(answer(SECONDS / 2)), await answer(SECONDS * 2)

    assert run(use) == ("answer", "answer")


def test_each_has_its_own_time() -> None:
    async def use(wait_for: Wait) -> object:
        late = asyncio.ensure_future(wait_for(answer(60)))
        quick = [asyncio.ensure_future(wait_for(answer())) for _ in range(3)]
        return await asyncio.gather(late, *quick, return_exceptions=True)

    results = run(use)
    assert isinstance(results, list)
    assert isinstance(results[0], TimeoutError)
    assert results[1:] == ["answer"] * 3


@pytest.mark.parametrize("is_late", [False, True])
def test_what_another_cancels_is_cancelled_also_when_it_is_late_too(is_late: bool) -> None:
    async def use(wait_for: Wait) -> object:
        began, late = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                # It takes a while to end, in which it is cancelled once more.
                late.set()
                await asyncio.sleep(SECONDS)

        task = asyncio.ensure_future(wait_for(hold()))
        await (late if is_late else began).wait()
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        return result

    assert isinstance(run(use), asyncio.CancelledError)


def test_an_error_of_what_is_waited_for_is_its_own() -> None:
    async def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        run(lambda wait_for: wait_for(fail()))


def test_what_makes_another_error_of_its_end_leaves_its_task_uncancelled() -> None:
    async def fail_late() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError from None

    async def use(wait_for: Wait) -> object:
        with pytest.raises(ValueError, match=r"^$"):
            await wait_for(fail_late())
        task = asyncio.current_task()
        assert task
        return task.cancelling()

    assert run(use) == 0
