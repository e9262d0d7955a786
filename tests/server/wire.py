"""A client that sends bytes as they are, to a service that runs."""

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

MEBIBYTE = 1024 * 1024
USERS = "/api/v1/users"


class Response:
    """What a server sent until it closed, or until the body was whole."""

    def __init__(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            self.status = int(stream.readline().split()[1])
            lines = iter(lambda: stream.readline().strip().decode(), "")
            self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            self.text = stream.read(int(self.headers.get("content-length", 0))).decode()

    @property
    def code(self) -> str:
        assert self.headers["request-id"]
        return json.loads(self.text)["error"]["code"]

    @property
    def message(self) -> str:
        return json.loads(self.text)["error"]["message"]


class Wire:
    """Sends bytes to a service as they are."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.key = f"X-API-Key: {key}"

    @contextmanager
    def sent(self, start: str, headers: Iterable[str] = (), body: bytes = b"") -> Iterator[socket.socket]:
        """A connection on which a request, or a part of one, was sent; `start` has no version."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            lines = [f"{start} HTTP/1.1", "Host: localhost", *headers]
            connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
            yield connection

    def ask(self, start: str, *headers: str, body: bytes = b"", ended: bool = False) -> Response:
        """Sends a request; `ended` says that nothing more comes. Returns the answer."""
        with self.sent(start, headers, body) as connection:
            if ended:
                connection.shutdown(socket.SHUT_WR)
            return Response(connection)

    def send_json(self, start: str, content: Any) -> Any:
        """What the body of the answer says."""
        body = json.dumps(content).encode()
        headers = ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return json.loads(self.ask(start, *headers, *([] if "login" in start else [self.key]), body=body).text)

    def known(self, email: str) -> bool:
        answer = self.ask(f"GET {USERS}?email={quote(email)}", self.key)
        assert answer.status == 200
        return bool(json.loads(answer.text)["data"])
