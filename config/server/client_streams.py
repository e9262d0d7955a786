"""The way of a stream to its client: through a pipe that Granian reads, and sends chunk by chunk.

Granian takes from a pipe what the client takes, and no more; of what it is given in another way it keeps everything
that a slow client has not taken. But it takes the end of a pipe for the end of the response, whatever ended it. So the
worker keeps the writing end open until it knows that the stream is complete; where it is not, the connection is reset
before the pipe ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import socket
import struct
import termios
from contextlib import suppress
from pathlib import Path

from granian.rsgi import HTTPProtocol  # type: ignore[attr-defined]

from config.server.answers import Answer, Environ

_FILES = Path("/proc/self/fd")
# In which Granian has begun to read. It does at once, unless the client has left.
SECONDS_TO_BEGIN = 5.0
_SECONDS_BETWEEN_LOOKS = 0.002
# Whoever closes the socket, also the kernel when the process is killed, resets the connection.
_RESET = struct.pack("ii", 1, 0)
_NO_RESET = struct.pack("ii", 0, 0)
# It lets no other thread run meanwhile, which might end the connection in order.
_libc = ctypes.PyDLL(None)


class ClientStream:
    """A stream as its worker sees it.

    Args:
        environ: of the request.
    """

    def __init__(self, environ: Environ) -> None:
        self._peer = environ["REMOTE_ADDR"], int(environ["REMOTE_PORT"])
        self._socket: socket.socket | None = None
        self._pipe: int | None = None
        self._is_cut = False

    async def begin(self, protocol: HTTPProtocol, beginning: Answer) -> int | None:
        """Sends the beginning, which is shorter than a pipe.

        Returns:
            The writing end of the pipe for the rest; None where the client has left.
        """
        # In a thread: of thousands of connections, it takes some ten milliseconds to find one.
        self._socket = await asyncio.to_thread(_find_socket, *self._peer)
        if self._is_cut:
            # Meanwhile. Granian must not get a pipe that nobody ends.
            self._close()
            return None
        if self._socket is None:
            protocol.response_empty(503, [])
            return None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        reading, writing = os.pipe()
        self._pipe = writing
        try:
            os.set_blocking(writing, False)
            if os.write(writing, beginning.body) < len(beginning.body):
                # Linux gives small pipes to whoever has very many.
                return None
            protocol.response_file(beginning.status, beginning.headers, f"{_FILES}/{reading}")
            deadline = asyncio.get_running_loop().time() + SECONDS_TO_BEGIN
            while _count_unread(reading) == len(beginning.body):
                if asyncio.get_running_loop().time() > deadline:
                    return None
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        finally:
            # Granian has opened it by itself: whoever writes is told when that one is closed.
            os.close(reading)
        return self._pipe

    def finish(self) -> None:
        """Ends the response: everything was written."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_RESET)
        self._close()

    def cut(self) -> None:
        """Resets the connection. A shutdown would look like an end to a client that speaks HTTP/1.0."""
        self._is_cut = True
        if self._socket is not None:
            unspecified = ctypes.create_string_buffer(struct.calcsize("H14x"))
            _libc.connect(self._socket.fileno(), unspecified, len(unspecified))
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._pipe is not None:
            os.close(self._pipe)
        self._socket = self._pipe = None


def _count_unread(pipe: int) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return int(count)


def _find_socket(host: str, port: int) -> socket.socket | None:
    """A copy of this process's socket whose other end is there; Granian does not tell which it is."""
    for path in _FILES.iterdir():
        with suppress(OSError):
            # Of a file that is no socket, the first look fails.
            found = socket.socket(fileno=int(path.name))
            try:
                if found.getpeername()[:2] == (host, port):
                    return _copy(found, host, port)
            finally:
                found.detach()
    return None


def _copy(found: socket.socket, host: str, port: int) -> socket.socket | None:
    """Not `found.dup()`, which makes also the original blocking: Granian would wait in its next write."""
    descriptor = os.dup(found.fileno())
    # Looked at again: where the client has left meanwhile, it may be of another one, or of no socket.
    try:
        copy = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return None
    with suppress(OSError):
        if copy.getpeername()[:2] == (host, port):
            return copy
    copy.close()
    return None
