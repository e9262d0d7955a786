"""Receivers of webhooks: servers of this process that note what they get, and connections that are watched."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_watched: list[list[Any]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for connections in _watched:
            connections.append(arguments[1])


sys.addaudithook(_note)


@contextmanager
def watched_connections() -> Iterator[list[Any]]:
    """The addresses to which this process connects, or tries to, meanwhile."""
    connections: list[Any] = []
    _watched.append(connections)
    try:
        yield connections
    finally:
        _watched.remove(connections)


@dataclass
class Receiver:
    """Notes each message, and answers as `answer` says: a status, headers and a body."""

    answer: Callable[[int], tuple[int, dict[str, str], bytes]] = lambda number: (204, {}, b"")
    messages: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @contextmanager
    def running(self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status, headers, answer = receiver.answer(len(receiver.messages))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *arguments: object) -> None:
                pass

        with Server((host, 0), Handler) as server:
            if context:
                server.socket = context.wrap_socket(server.socket, server_side=True)
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()
