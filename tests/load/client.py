"""A client that says exactly what it sends, and from which address of the loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from typing import NamedTuple

PATIENCE = 90.0


class Answer(NamedTuple):
    """`status` is None when there was no answer; `seconds` count from before the connection to the whole answer."""

    status: int | None
    seconds: float
    headers: Mapping[str, str] = {}
    body: bytes = b""


def wire(port: int, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request as it is sent."""
    fields = {"Host": f"127.0.0.1:{port}", **headers}
    if body:
        fields["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def ask(
    port: int,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    address: str = "127.0.0.1",
) -> Answer:
    """Asks on a connection of its own, so that the kernel chooses the worker; reads while it still sends."""
    request = wire(port, method, path, {**headers, "Connection": "close"}, body)
    start = time.perf_counter()
    writer = None
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            refuse_own(writer.get_extra_info("socket"))
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            fields = parse_head(head)
            content = await _read_body(reader, fields)
    except (OSError, EOFError, TimeoutError):
        return Answer(None, time.perf_counter() - start)
    finally:
        if writer:
            writer.transport.abort()
    return Answer(int(head[9:12]), time.perf_counter() - start, fields, content)


async def _read_body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> bytes:
    if fields.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(fields.get("content-length", "0")))
    chunks = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(len(b"\r\n"))
    return b"".join(chunks)


def refuse_own(connection: socket.socket) -> None:
    """Refuses a connection to itself: where nobody listens, the kernel may choose the port for its other end, too.

    Raises:
        ConnectionRefusedError: what is sent there comes back.
    """
    if connection.getsockname() == connection.getpeername():
        raise ConnectionRefusedError


def parse_head(head: bytes) -> dict[str, str]:
    """The headers of an answer, by their names in small letters."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
