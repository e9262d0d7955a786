"""Stands between the service and PostgreSQL, and cuts connections at the worst instant: when COMMIT is sent, or a
statement that is a transaction by itself.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
# Of the statement that adds a row and the record of its key (config.fastpath.inserts).
COMMITS_ITSELF = b" FROM guard RETURNING "
FATES = ("COMMIT not delivered", "COMMIT not answered")


class Proxy:
    """Listens on a socket in `folder` for PostgreSQL in `server`.

    `rate` is the share of COMMITs with which a connection ends, `fates` what may become of such a COMMIT; `cuts` counts
    them.
    """

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.server = server
        self.rate = 0.0
        self.fates = FATES
        self.cuts: Counter[str] = Counter()
        self._serving: set[asyncio.Task[None] | None] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        listening = asyncio.start_unix_server(self._serve, self.folder / SOCKET)
        self._listening = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _ended(self) -> None:
        """Waits until what the clients have closed is closed towards PostgreSQL, too."""
        self._listening.close()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        with suppress(OSError):
            backend, to_backend = await asyncio.open_unix_connection(self.server / SOCKET)
            back = asyncio.create_task(self._back(backend, writer))
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._forth(reader, to_backend, writer)
            to_backend.close()
            await back
        writer.close()
        self._serving.discard(asyncio.current_task())

    async def _back(self, backend: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await backend.read(65536):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def _forth(
        self, reader: asyncio.StreamReader, to_backend: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        kind = b""  # The first message has no type.
        commits: set[bytes] = set()
        while True:
            message, text = await _message(reader)
            # A query, one that is parsed to be executed at once, whose name is empty, or one that was parsed before.
            name, has_name = text.partition(b"\0")[0], message[4:5] != b"\0"
            commits_itself = kind == b"P" and COMMITS_ITSELF in text
            if commits_itself and has_name:
                commits.add(name)
            if kind in {b"Q", b"P"}:
                commit = text.startswith(b"COMMIT") or (commits_itself and not has_name)
            else:
                commit = kind == b"B" and name in commits
            fate = random.choice(self.fates) if commit and random.random() < self.rate else None
            if fate != FATES[0]:
                to_backend.write(kind + message)
            # What was parsed is executed by further messages, up to a Sync.
            while fate == FATES[1] and kind not in {b"Q", b"S"}:
                kind = await reader.readexactly(1)
                to_backend.write(kind + (await _message(reader))[0])
            if fate:
                self.cuts[fate] += 1
                writer.transport.abort()
                return
            await to_backend.drain()
            kind = await reader.readexactly(1)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """A message behind its type, as it came, and its content from the first byte that is not null."""
    length = await reader.readexactly(4)
    body = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
    return length + body, body.lstrip(b"\0")
