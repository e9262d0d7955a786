"""The bodies of requests, as they arrive: no longer than their endpoint can use, and not too many long ones at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.request_limits import MAX_SHORT_BODY, body_too_long
from config.server.answers import build_overload
from config.server.environ import Environ

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# From the end of the headers to the end of the body, however it trickles in; and for what was begun when the worker is
# told to end. Less than `serve` gives its workers, so that a stalled body ends none before its other requests are done.
MAX_SECONDS = 15.0
# The event loop is woken for each, also for one of a single byte.
MAX_PIECES = 16 * 1024
# Of bodies that a worker has begun to receive, but for those whose length says that they are short. Whoever they are
# from is not known yet, and there may be thousands. Of a body that is refused for its size, so much is still read: many
# clients look for the answer only after they sent everything, and find a broken pipe when the server closes on them.
MAX_HELD_BYTES = 64 * 1024 * 1024


class Bodies:
    """Receives the bodies of a worker."""

    def __init__(self) -> None:
        self._held_bytes = 0

    async def receive(self, environ: Environ, receive: Receive, limit: int) -> bytes:
        """A body, whole and no longer than the limit.

        Args:
            environ: of its request.
            receive: ASGI's.
            limit: in bytes.

        Raises:
            DomainError: PAYLOAD_TOO_LARGE, VALIDATION_ERROR for a body that is late or without its end, or
                SERVICE_UNAVAILABLE.
        """
        given = environ.get("CONTENT_LENGTH")
        length = None if given is None else int(given)
        if length == 0:
            return b""
        if length is not None and length > limit:
            raise body_too_long(limit)
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await self._receive(receive, length, limit)
        except TimeoutError:
            message = f"The body did not arrive within {MAX_SECONDS:g} seconds."
            raise invalid(Detail("", message)) from None

    async def throw_away(self, receive: Receive) -> None:
        """Reads what is left of the body of a request that is answered already, up to a bound."""
        with suppress(DomainError, TimeoutError):
            async with asyncio.timeout(MAX_SECONDS):
                await self._receive(receive, None, 0)

    async def _receive(self, receive: Receive, length: int | None, limit: int) -> bytes:
        """Reads a body piece by piece, and throws away what is over the limit, up to a bound."""
        is_short = length is not None and length <= MAX_SHORT_BODY
        body = bytearray()
        held = size = count = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    # The client has left, or what it sends is no body any more.
                    raise invalid(Detail("", "The body is incomplete."))
                piece = message.get("body", b"")
                size += len(piece)
                count += 1
                if size <= limit:
                    body += piece
                    if not is_short:
                        held += len(piece)
                        self._hold(len(piece))
                is_whole = size == length or not message.get("more_body")
                if is_whole or size > MAX_HELD_BYTES or count > MAX_PIECES:
                    break
        finally:
            self._held_bytes -= held
        if size > limit:
            raise body_too_long(limit)
        if count > MAX_PIECES:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body comes in more than {MAX_PIECES} pieces.")
        return bytes(body)

    def _hold(self, count: int) -> None:
        self._held_bytes += count
        if self._held_bytes > MAX_HELD_BYTES:
            raise build_overload("Too many large bodies are being received.")


async def wait_until_left(receive: Receive) -> None:
    """Ends when the client has left. What it still sends is nothing that anybody waits for."""
    while (await receive())["type"] != "http.disconnect":
        pass
