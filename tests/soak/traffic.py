"""Everything else that clients do, at random: reads of every kind, changes, log-ins, errors, pages, requests left."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tests.faults.clients import POSTS, TIMEOUT

PAUSE = 0.02
READS = (
    *("/api/v1/users?limit=100&sort=name", "/api/v2/users?cursor=&sort=email", "/api/v1/users?status=inactive&page=2"),
    *("/api/v1/users/1", "/api/v1/users/1/orders", "/api/v2/orders?sort=item&order=desc&limit=100", "/api/v1/orders"),
    *(
        "/api/v2/payments?sort=amount&cursor=",
        "/api/v1/payments?offset=40",
        "/api/v1/posts?limit=20",
        "/api/v1/posts/1",
    ),
    *(
        "/api/v1/posts/2/comments",
        "/api/v1/users?fields=id,name&envelope=false",
        "/api/v1/protected",
        "/api/v1/api-keys",
    ),
    *("/versions", "/", "/openapi.json?version=2", "/docs", "/health/ready"),
)
PAGES = ("/admin/", "/admin/users/user/", "/admin/payments/payment/?o=1", "/admin/config/auditevent/")
# Of as many rows as an export takes, from the beginning: one that grew would take ever more memory.
EXPORT = "/admin/users/user/export/"
REFUSED: tuple[tuple[str, str, bytes, int], ...] = (
    ("POST", "/api/v1/orders", b'{"item": "", "qty": true}', 400),
    ("POST", "/api/v1/orders", b'{"item": ', 400),
    ("POST", "/api/v1/payments", b'{"amount": 1}', 400),
    ("GET", "/api/v1/users?sort=password", b"", 400),
    ("GET", "/api/v9/users", b"", 404),
    ("PUT", "/api/v1/users", b"{}", 405),
    ("POST", "/api/v1/orders", b'{"item": "' + b"x" * 2_000_000 + b'"}', 413),
)
# What may always happen while things die: too much, database away, no answer.
ALWAYS = (429, 503, None)


class Visitor(threading.Thread):
    """Does one thing after the other. `statuses` counts the answers; `unexpected` holds those that none should get."""

    def __init__(self, port: int, key: str, password: str, session: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.port, self.password, self.session = port, password, session
        self.headers = {"X-API-Key": key, "Content-Type": "application/json"}
        self.stopping = threading.Event()
        self.statuses: Counter[int | None] = Counter()
        self.unexpected: list[Any] = []
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)

    def run(self) -> None:
        deeds: dict[Callable[[], None], int] = {
            self.read: 50,
            self.change: 20,
            self.be_refused: 10,
            self.leave: 10,
            self.come_and_go: 4,
            self.log_in: 2,
            self.browse: 3,
            self.export: 2,
        }
        while not self.stopping.wait(PAUSE):
            random.choices([*deeds], [*deeds.values()])[0]()
        self._connection.close()

    def read(self) -> None:
        self.ask("GET", random.choice(READS), expected=(200,))

    def change(self) -> None:
        body = {"title": f"Title {random.randrange(100)}", "body": "text " * random.randrange(500)}
        self.ask("PATCH", f"/api/v1/posts/{random.randint(1, POSTS)}", body, expected=(200,))

    def be_refused(self) -> None:
        method, path, body, status = random.choice(REFUSED)
        self.ask(method, path, body, expected=(status,))

    def leave(self) -> None:
        """Asks for much, and does not wait for it."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), TIMEOUT) as connection:
                head = f"Host: 127.0.0.1:{self.port}\r\nX-API-Key: {self.headers['X-API-Key']}\r\n\r\n"
                connection.sendall(f"GET /api/v1/posts?limit=100 HTTP/1.1\r\n{head}".encode())
        except OSError:
            self.statuses[None] += 1

    def come_and_go(self) -> None:
        """A user who writes something and is removed again. After an answer that was lost, its email is taken."""
        email = f"{random.getrandbits(64):x}@example.com"
        user = self.ask("POST", "/api/v1/users", {"name": "Visitor", "email": email}, expected=(201, 409))
        if user:
            path = f"/api/v1/users/{user['data']['id']}"
            for number in range(3):
                self.ask("POST", f"{path}/posts", {"title": f"Post {number}"}, expected=(201,))
            self.ask("DELETE", path, expected=(204, 404))

    def log_in(self) -> None:
        given = {"email": "admin@example.com", "password": self.password}
        tokens = self.ask("POST", "/api/v1/login", given, headers=_JSON, expected=(200,))
        for path in ("token/refresh", "logout"):
            if not tokens:
                return
            body = {"refresh_token": tokens["data"]["refresh_token"]}
            # Of a run that was cut off, the token may have been used.
            tokens = self.ask("POST", f"/api/v1/{path}", body, headers=_JSON, expected=(200, 204, 401))

    def browse(self) -> None:
        self.ask("GET", random.choice(PAGES), headers=self.session, expected=(200,))

    def export(self) -> None:
        form = urlencode({"format": random.choice(("csv", "ndjson"))}).encode()
        # The change list tells an account whose other export is running to wait.
        self.ask("POST", EXPORT, form, headers=self.session, expected=(200, 302))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        expected: tuple[int, ...],
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Asks once. Returns the JSON of an answer that has some, if it is a success."""
        text = json.dumps(body).encode() if isinstance(body, dict) else body
        try:
            self._connection.request(method, path, text, headers or self.headers)
            response = self._connection.getresponse()
            content = response.read()
            status: int | None = response.status
        except (OSError, http.client.HTTPException):
            self._connection.close()
            status, content = None, b""
        self.statuses[status] += 1
        if status not in (*expected, *ALWAYS):
            self.unexpected.append((method, path, status, content[:300]))
        is_json = status in {200, 201} and response.headers.get_content_type() == "application/json"
        return json.loads(content) if is_json else None


_JSON = {"Content-Type": "application/json"}
