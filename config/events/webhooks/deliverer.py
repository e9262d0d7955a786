"""Sends what is due to webhooks: requests side by side on one event loop, and the database in a thread beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import Error, close_old_connections, connections

from config.events.webhooks import queue
from config.events.webhooks.messages import Message
from config.events.webhooks.queue import Attempt
from config.events.webhooks.sending import Sender
from config.postgresql.transactions import is_unavailable

SECONDS_BETWEEN_LOOKS = 0.2
# Requests that end at about the same time are noted together.
SECONDS_TO_GATHER = 0.02
SECONDS_WITHOUT_DATABASE = 1.0
# Processor time of a round of the event loop: a deliverer that needs more has enough to do, and would let requests wait
# until they time out. Wall-clock time would include other processes.
MAX_BUSY_SECONDS = 0.1


def deliver(is_stopped: Callable[[], bool] = lambda: False, *, once: bool = False) -> None:
    """Sends what is due, until it is stopped, and then ends after the requests that are under way.

    Args:
        is_stopped: asked before each look for what is due.
        once: whether to end when nothing is due.
    """
    asyncio.run(_Deliverer(is_stopped, once=once).run())


class _Deliverer:
    def __init__(self, is_stopped: Callable[[], bool], *, once: bool) -> None:
        self.is_stopped, self.once = is_stopped, once
        self.finished: list[Attempt] = []
        self.under_way: set[asyncio.Task[None]] = set()
        self.wakes = asyncio.Event()
        self.busy = 0.0
        # One, since a connection of Django's is of its thread.
        self.database = ThreadPoolExecutor(1, "database")
        self.sender = Sender()

    async def run(self) -> None:
        try:
            while not (self.is_stopped() and not self.under_way and not self.finished):
                messages = await self._look()
                if self.once and not (messages or self.under_way or self.finished or self.busy >= MAX_BUSY_SECONDS):
                    break
                self.wakes.clear()
                for message in messages:
                    task = asyncio.create_task(self._send(message))
                    self.under_way.add(task)
                    task.add_done_callback(self.under_way.discard)
                if len(messages) == queue.MAX_TAKEN:
                    # There may be more.
                    self.wakes.set()
                await self._wait()
        finally:
            await asyncio.get_running_loop().run_in_executor(self.database, connections.close_all)
            self.database.shutdown()
            self.sender.close()

    async def _look(self) -> Sequence[Message]:
        """Notes what has ended, and takes what is due."""
        finished = self.finished[:]
        takes = not self.is_stopped() and self.busy < MAX_BUSY_SECONDS
        try:
            messages = await asyncio.get_running_loop().run_in_executor(self.database, _turn, finished, takes)
        except Error as error:
            if self.once or not is_unavailable(error):
                raise
            # Results are recorded later, or another process sends the message again when its lease has run out.
            await asyncio.sleep(SECONDS_WITHOUT_DATABASE)
            return []
        del self.finished[: len(finished)]
        return messages

    async def _send(self, message: Message) -> None:
        outcome = await self.sender.send(message.url, message.headers, message.body)
        self.finished.append(Attempt(message, outcome))
        self.wakes.set()

    async def _wait(self) -> None:
        began = time.thread_time()
        await asyncio.sleep(SECONDS_TO_GATHER)
        self.busy = time.thread_time() - began
        try:
            async with asyncio.timeout(SECONDS_BETWEEN_LOOKS):
                await self.wakes.wait()
        except TimeoutError:
            return


def _turn(finished: Sequence[Attempt], takes: bool) -> Sequence[Message]:
    close_old_connections()
    queue.note(finished)
    return queue.take() if takes else []
