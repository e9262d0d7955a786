"""The bodies of requests, as they arrive: no longer than their endpoint can use, and not too many long ones at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from granian.rsgi import HTTPProtocol, ProtocolClosed  # type: ignore[attr-defined]

from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.request_limits import MAX_SHORT_BODY, body_too_long
from config.server.answers import build_overload
from config.server.deadlines import Deadline

# How much of a body that is refused for its size is still read. Many clients look for the answer only after they
# sent everything, and find a broken pipe when the server closes on them first.
DRAINED_BYTES = 64 * 1024 * 1024
# Chunks, or what arrives at once where the length is known.
# Each costs a turn of the event loop, also one of a single byte.
MAX_PIECES = 16 * 1024
# Of bodies that a worker has begun to receive, but for those whose length says that they are short. Whoever they are
# from is not known yet, and there may be thousands.
MAX_HELD_BYTES = 64 * 1024 * 1024


class Pieces:
    """The pieces of a body, as they arrive. Granian has one iterator for all who read them.

    Attributes:
        is_begun: whether somebody has begun to read. A client that waits for `100 Continue` sends from then on.
    """

    def __init__(self, protocol: HTTPProtocol) -> None:
        self._protocol = protocol
        self._iterator: Any = None

    @property
    def is_begun(self) -> bool:
        return self._iterator is not None

    async def read_whole(self) -> bytes:
        """All of them at once.

        Raises:
            granian.rsgi.ProtocolClosed: the client has left.
        """
        body: bytes = await self._protocol()
        return body

    def __aiter__(self) -> Self:
        if self._iterator is None:
            self._iterator = aiter(self._protocol)
        return self

    async def __anext__(self) -> bytes:
        piece: bytes = await anext(self._iterator)
        return piece


class Bodies:
    """Receives the bodies of a worker.

    Args:
        deadline: of each.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._held_bytes = 0

    async def receive(self, pieces: Pieces, headers: Mapping[str, str], limit: int) -> bytes:
        """A body, whole and no longer than the limit.

        Args:
            pieces: of the body.
            headers: of its request, by their names in small letters.
            limit: in bytes.

        Raises:
            TimeoutError: it did not arrive in time.
            DomainError: PAYLOAD_TOO_LARGE, VALIDATION_ERROR for a body without its end, or SERVICE_UNAVAILABLE.
        """
        return await self._deadline.wait_for(self._receive(pieces, headers, limit))

    async def throw_away(self, pieces: Pieces) -> None:
        """Reads what is left of the body of a request that is answered already, up to a bound."""
        with suppress(DomainError, TimeoutError, ProtocolClosed):
            await self._deadline.wait_for(self._read_pieces(pieces, 0))

    async def _receive(self, pieces: Pieces, headers: Mapping[str, str], limit: int) -> bytes:
        length = int(headers.get("content-length", limit))
        if length > limit:
            raise body_too_long(limit)
        if "content-length" in headers and length <= MAX_SHORT_BODY:
            try:
                return await pieces.read_whole()
            except ProtocolClosed:
                raise _incomplete() from None
        return await self._read_pieces(pieces, limit)

    async def _read_pieces(self, pieces: Pieces, limit: int) -> bytes:
        """Reads a body piece by piece, and throws away what is over the limit, up to a bound."""
        body = bytearray()
        size = count = ends = 0
        try:
            async for piece in pieces:
                size += len(piece)
                count += 1
                # Granian gives an empty piece for the end, and one before it for an error or trailers: it does not say
                # which.
                ends += not piece
                if size <= limit:
                    body += piece
                    self._held_bytes += len(piece)
                    if self._held_bytes > MAX_HELD_BYTES:
                        raise build_overload("Too many long bodies are on their way.")
                if size > DRAINED_BYTES or count > MAX_PIECES:
                    break
        finally:
            self._held_bytes -= len(body)
        if size > limit:
            raise body_too_long(limit)
        if count > MAX_PIECES:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body comes in more than {MAX_PIECES} pieces.")
        if ends != 1:
            raise _incomplete()
        return bytes(body)


def _incomplete() -> DomainError:
    return invalid(Detail("", "The body ends too early, or trailers follow it."))
