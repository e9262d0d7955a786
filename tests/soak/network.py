"""A bad network between the service and PostgreSQL: TCP that delays what it carries, stalls, and drops connections."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

# Of each piece, in seconds: the mean and the most.
MEAN_DELAY, MAX_DELAY = 0.0005, 0.02
# As when a packet is lost: TCP sends it again after 0.2 s, and then after ever longer.
STALLS = (0.2, 2.0)
EVENTS = {"stall": 6, "reset": 3, "outage": 1}
OUTAGE = 1.0


class Network:
    """Listens on a TCP port of the loopback for PostgreSQL on a Unix socket.

    `seconds` is the mean time between two events, None for none; `events` counts them.
    """

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.seconds: float | None = None
        self.events: Counter[str] = Counter()
        self.port = 0
        self._links: set[_Link] = set()
        self._up = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Network:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._up.set()
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]
        self._weather = asyncio.create_task(self._change())

    async def _stop(self) -> None:
        self._weather.cancel()
        self._listening.close()
        for link in list(self._links):
            link.reset()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._up.wait()
        try:
            backend, to_backend = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, to_backend)
        self._links.add(link)
        await asyncio.gather(link.carry(reader, to_backend), link.carry(backend, writer))
        self._links.discard(link)

    async def _change(self) -> None:
        while True:
            await asyncio.sleep(random.expovariate(1 / (self.seconds or 1.0)))
            if self.seconds and self._links:
                event = random.choices([*EVENTS], [*EVENTS.values()])[0]
                self.events[event] += 1
                await self._happen(event)

    async def _happen(self, event: str) -> None:
        link = random.choice([*self._links])
        match event:
            case "stall":
                link.stall(random.uniform(*STALLS))
            case "reset":
                link.reset()
            case _:
                self._up.clear()
                for one in list(self._links):
                    one.reset()
                await asyncio.sleep(OUTAGE)
                self._up.set()


class _Link:
    """A connection of the service, and the one that it is carried on to."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self.writers = writers
        self._carries = asyncio.Event()
        self._carries.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                await asyncio.sleep(min(MAX_DELAY, random.expovariate(1 / MEAN_DELAY)))
                await self._carries.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()

    def stall(self, seconds: float) -> None:
        self._carries.clear()
        asyncio.get_running_loop().call_later(seconds, self._carries.set)

    def reset(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
        self._carries.set()
