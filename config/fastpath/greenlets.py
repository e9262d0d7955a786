"""Requests of one event loop, each in a greenlet that is left while it waits (as in SQLAlchemy's asyncio extension).

Replaces: a thread for each request. Buys: the handler is ordinary synchronous code, and what requests wait for at the
same time is waited for together; no thread competes for the interpreter's lock.

While a greenlet runs, its thread has no running loop: where there is one, Django refuses to use the database.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from time import perf_counter
from types import SimpleNamespace
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from config.http.blocking import BlockingBackend

Result = TypeVar("Result")

# Ready greenlets run one after the other. After this time, the loop first handles its sockets and timers.
SECONDS_BEFORE_YIELD = 0.005


class RequestGreenlet(greenlet):
    """Runs one function after the other: Python maps memory for its frames once.

    Attributes:
        engine: of its loop.
        caller: whom the request counts for.
        connections: those of Django's that the request uses, by alias.
    """

    engine: Engine
    caller: Hashable
    connections: SimpleNamespace
    future: Future[Any]


def get_request_greenlet() -> RequestGreenlet | None:
    """The greenlet of the caller, which may wait; None where the caller is no request of a loop."""
    current = getcurrent()
    return current if type(current) is RequestGreenlet else None


def release_connections() -> None:
    """Gives back the connections that the request of the caller has borrowed, but for those in a transaction."""
    runner: Any = getcurrent()
    for connection in vars(runner.connections).values():
        connection.release()


def wait() -> Any:
    """Leaves the greenlet of the caller until `Engine.resume` is called for it.

    Returns:
        What it was resumed with; an Exception is raised instead.
    """
    result = getcurrent().parent.switch()  # type: ignore[union-attr]  # a request has one
    if isinstance(result, Exception):
        # Several greenlets may get the same one: none may find the frames of another in it.
        raise result.with_traceback(None)
    return result


class Wakeup:
    """Resumes the greenlet that makes it when it is called for the first time: the first of several events counts."""

    __slots__ = ("_runner",)

    def __init__(self) -> None:
        self._runner = get_request_greenlet()

    def __call__(self, value: Any = None) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.engine.resume([(runner, value)])


class Engine:
    """Runs functions in greenlets of a loop.

    Args:
        loop: the event loop, in whose thread this is made.
        is_given_up: whether nothing is to be expected any more of the database with an alias.

    Attributes:
        running: how many functions have not ended.
        blocking: the thread for what holds one for long.
        shared: by alias, the connections that they share (config.fastpath.postgresql.base).
    """

    shared: Mapping[str, Any]

    def __init__(self, loop: AbstractEventLoop, is_given_up: Callable[[str], bool]) -> None:
        self.loop, self.is_given_up = loop, is_given_up
        self.running = 0
        self._idle: list[RequestGreenlet] = []
        self._ready: deque[tuple[RequestGreenlet, Any]] = deque()
        self._is_scheduled = False
        # One thread: Argon2 and zlib let the interpreter's lock go, but not the processor.
        self.blocking = ThreadPoolExecutor(1, "blocking")

    async def run(self, function: Callable[[], Result], caller: Hashable = None) -> Result:
        """What a function returns, which is called at once, and is left whenever it waits.

        It runs to its end even if the task that waits for it is cancelled.

        Args:
            function: has a context of its own (`contextvars`).
            caller: whom it counts for.
        """
        runner = self._idle.pop() if self._idle else RequestGreenlet(self._run_functions)
        runner.engine, runner.caller = self, caller
        runner.connections, runner.gr_context = SimpleNamespace(), Context()
        runner.future = future = self.loop.create_future()
        self.running += 1
        self._ready.append((runner, function))
        self.run_ready()
        result: Result = await future
        return result

    def resume(self, outcomes: Iterable[tuple[RequestGreenlet, Any]]) -> None:
        """Resumes greenlets soon, each with what it has waited for. Call it in the thread of the loop."""
        self._ready.extend(outcomes)
        if self._ready and not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self.run_ready)

    def run_ready(self) -> None:
        """Resumes ready greenlets; call it outside of all greenlets."""
        self._is_scheduled = False
        deadline = perf_counter() + SECONDS_BEFORE_YIELD
        asyncio._set_running_loop(None)
        try:
            while self._ready:
                runner, value = self._ready.popleft()
                runner.switch(value)
                if perf_counter() > deadline:
                    break
        finally:
            asyncio._set_running_loop(self.loop)
        self.resume(())

    def call_in_thread(self, function: Callable[[], Result], executor: ThreadPoolExecutor | None = None) -> Result:
        """What a function returns that is run by a thread; call it in a greenlet.

        Args:
            function: what is run.
            executor: whose thread runs it; None for that of the loop.
        """
        future = self.loop.run_in_executor(executor, function)
        future.add_done_callback(Wakeup())
        wait()
        return future.result()

    def close(self) -> None:
        """Closes all connections that no function uses, and ends the thread."""
        for connection in self.shared.values():
            connection.close()
        self.blocking.shutdown(wait=False)

    def _run_functions(self, function: Callable[[], object]) -> None:
        """What each greenlet does: one function after the other, as it is switched to."""
        runner: Any = getcurrent()
        while True:
            result, failure = None, None
            try:
                try:
                    result = function()
                finally:
                    release_connections()
            except BaseException as error:  # noqa: BLE001 - raised where the function is waited for
                failure = error
            self.running -= 1
            self._idle.append(runner)
            # Whoever waited for it may have been cancelled.
            if failure is not None and not runner.future.done():
                runner.future.set_exception(failure)
            elif not runner.future.done():
                runner.future.set_result(result)
            # They must not stay with their greenlet.
            del function, result, failure
            runner.future = runner.gr_context = None
            function = runner.parent.switch()


class GreenletBlockingBackend(BlockingBackend):
    """Leaves the loop's thread: a request that runs in a greenlet waits for another thread, or for a timer."""

    def run(self, function: Callable[[], Result]) -> Result:
        runner = get_request_greenlet()
        if runner is None:
            return super().run(function)
        # Nothing may wait for a connection that is borrowed but unused.
        release_connections()
        return runner.engine.call_in_thread(function, runner.engine.blocking)

    def sleep(self, seconds: float) -> None:
        runner = get_request_greenlet()
        if runner is None:
            super().sleep(seconds)
        else:
            runner.engine.loop.call_later(seconds, Wakeup())
            wait()
