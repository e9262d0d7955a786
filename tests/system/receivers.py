"""Many endpoints of webhooks in one process: `python -m tests.system.receivers`, which prints its ports.

Of three ports the first answers and prints a line of JSON for each message, the second never answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = await reader.readexactly(int({name.lower(): value for name, value in headers.items()}["content-length"]))
    sys.stdout.write(json.dumps({"at": time.time(), "path": head.split()[1], "event": json.loads(body)}) + "\n")
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    await writer.drain()
    writer.close()


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def main() -> None:
    servers = [await asyncio.start_server(each, "127.0.0.1", 0, backlog=1024) for each in (answer, hang)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
