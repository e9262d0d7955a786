"""A follower and a receiver, by the code that the guide shows, each a process: `python -m tests.faults.consumers`."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import httpx

# Of requests to the receiver, up to which number between 0 and 1 what becomes of them.
HANGING, REFUSED, UNANSWERED = 0.003, 0.05, 0.1
# Longer than the deliverer waits.
SECONDS_OF_HANGING = 11.0


def read_guide(page: str) -> dict[str, Any]:
    """What the first block of Python on a page defines."""
    code = Path(f"docs/guide/{page}.md").read_text().partition("```python\n")[2].partition("```\n")[0]
    names: dict[str, Any] = {}
    exec(compile(code, page, "exec"), names)  # noqa: S102 - our own pages
    return names


def follow(file: str, origin: str, key: str) -> None:
    """Stores the events of a page and the cursor behind them in one transaction."""
    client = httpx.Client(base_url=origin, headers={"X-API-Key": key}, trust_env=False)
    # The trial reads it meanwhile.
    store = sqlite3.connect(file, timeout=60)
    store.execute("CREATE TABLE IF NOT EXISTS followed (event TEXT)")
    store.execute("CREATE TABLE IF NOT EXISTS progress (cursor TEXT)")

    def save(cursor: str) -> None:
        store.execute("INSERT OR REPLACE INTO progress (rowid, cursor) VALUES (1, ?)", [cursor])
        store.commit()

    follow_feed = read_guide("events")["follow"]
    while True:
        (cursor,) = store.execute("SELECT cursor FROM progress").fetchone() or [""]
        with suppress(httpx.TransportError):
            for event in follow_feed(client, cursor, save, 0.05):
                store.execute("INSERT INTO followed VALUES (?)", [json.dumps(event)])
        time.sleep(0.1)


def receive(folder: str, *endpoints: str) -> None:
    """Has an endpoint for each port and secret, which fails at random; see `make_faulty`."""
    names = read_guide("webhooks")
    requests = Path(folder, "requests").open("a", buffering=1)  # noqa: SIM115 - as long as the process
    names["ThreadingHTTPServer"] = lambda address, handler: ThreadingHTTPServer(address, make_faulty(handler, requests))
    for port, secret in zip(endpoints[::2], endpoints[1::2], strict=True):
        file = f"{folder}/received-{port}"
        threading.Thread(target=names["receive"], args=(secret, int(port), file)).start()


def make_faulty(handler: type[BaseHTTPRequestHandler], requests: IO[str]) -> type[BaseHTTPRequestHandler]:
    """Writes down the port, the time of the attempt, and the status, which is null when a request has come."""

    class Faulty(handler):  # type: ignore[valid-type, misc]
        def do_POST(self) -> None:  # noqa: N802 - a method of the server
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:
                # Its deliverer was killed: nobody reads what is answered, which is that no signature fits.
                return
            self.rfile = io.BytesIO(body)
            self.log_request(None)
            fate = random.random()
            if fate < HANGING:
                time.sleep(SECONDS_OF_HANGING)
            elif fate < REFUSED:
                self.send_response(500)
                self.end_headers()
            else:
                if fate < UNANSWERED:
                    self.wfile = io.BytesIO()
                super().do_POST()

        def log_request(self, code: object = None, size: object = None) -> None:
            line = [self.server.server_port, int(self.headers["webhook-timestamp"]), code]
            requests.write(json.dumps(line) + "\n")

    return Faulty


if __name__ == "__main__":
    {"follower": follow, "receiver": receive}[sys.argv[1]](*sys.argv[2:])
