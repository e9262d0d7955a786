"""The bodies of requests, as they arrive: no longer than their endpoint can use, and not too many long ones at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from granian.rsgi import HTTPProtocol, ProtocolClosed  # type: ignore[attr-defined]

from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.request_limits import MAX_SHORT_BODY, body_too_long
from config.server.deadlines import Deadline
from config.server.lanes import build_overload

# How much of a body that is refused for its size is still read. Many clients look for the answer only after they
# sent everything, and find a broken pipe when the server closes on them first.
DRAINED_BYTES = 64 * 1024 * 1024
# Every chunk costs a turn of the event loop, also one of a single byte.
MAX_CHUNKS = 16 * 1024
# Of bodies that a worker has begun to receive, but for those whose length says that they are short. Whoever they are
# from is not known yet, and there may be thousands.
MAX_HELD_BYTES = 64 * 1024 * 1024


class Bodies:
    """Receives the bodies of a worker.

    Args:
        deadline: of each.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._held_bytes = 0

    async def receive(self, protocol: HTTPProtocol, headers: Mapping[str, str], limit: int) -> bytes:
        """A body, whole and no longer than the limit.

        Args:
            protocol: of its request.
            headers: of its request, by their names in small letters.
            limit: in bytes.

        Raises:
            TimeoutError: it did not arrive in time.
            DomainError: PAYLOAD_TOO_LARGE, VALIDATION_ERROR for a body without its end, or SERVICE_UNAVAILABLE.
        """
        return await self._deadline.wait_for(self._receive(protocol, headers, limit))

    async def throw_away(self, protocol: HTTPProtocol) -> None:
        """Reads the body of a request that is answered already, up to a bound."""
        with suppress(DomainError, TimeoutError, ProtocolClosed):
            await self._deadline.wait_for(self._read_pieces(protocol, 0))

    async def _receive(self, protocol: HTTPProtocol, headers: Mapping[str, str], limit: int) -> bytes:
        length = int(headers.get("content-length", limit))
        if length > limit:
            raise body_too_long(limit)
        if "content-length" in headers and length <= MAX_SHORT_BODY:
            try:
                return await protocol()
            except ProtocolClosed:
                raise _incomplete() from None
        return await self._read_pieces(protocol, limit)

    async def _read_pieces(self, protocol: HTTPProtocol, limit: int) -> bytes:
        """Reads a body piece by piece, and throws away what is over the limit, up to a bound."""
        body = bytearray()
        size = chunks = ends = 0
        try:
            async for piece in protocol:
                size += len(piece)
                chunks += 1
                # Granian gives an empty piece for the end, and one before it for an error or trailers: it does not say
                # which.
                ends += not piece
                if size <= limit:
                    body += piece
                    self._held_bytes += len(piece)
                    if self._held_bytes > MAX_HELD_BYTES:
                        raise build_overload("Too many long bodies are on their way.")
                if size > DRAINED_BYTES or chunks > MAX_CHUNKS:
                    break
        finally:
            self._held_bytes -= len(body)
        if size > limit:
            raise body_too_long(limit)
        if chunks > MAX_CHUNKS:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body comes in more than {MAX_CHUNKS} chunks.")
        if ends != 1:
            raise _incomplete()
        return bytes(body)


def _incomplete() -> DomainError:
    return invalid(Detail("", "The body ends too early, or trailers follow it."))
