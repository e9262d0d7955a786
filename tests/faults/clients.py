"""Clients that write down what they are about to do, do it until they are told what became of it, and write that."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 30.0
POSTS = 5


@dataclass(frozen=True)
class Intent:
    """Something to create. What is created holds the number, by which it is known in the database."""

    number: int

    @property
    def kind(self) -> str:
        return ("payments", "payments", "orders", "comments")[self.number % 4]

    @property
    def path(self) -> str:
        return f"/posts/{1 + self.number % POSTS}/comments" if self.kind == "comments" else f"/{self.kind}"

    @property
    def body(self) -> bytes:
        match self.kind:
            case "payments":
                return b'{"amount": %d.%02d}' % divmod(self.number, 100)
            case "orders":
                return b'{"item": "%d", "qty": 1}' % self.number
            case _:
                return b'{"text": "%d"}' % self.number


class Client(threading.Thread):
    """Creates one thing after the other, and sometimes asks for an earlier one again.

    Every request stands in the ledger before it is sent, and its outcome after it: a line of JSON each.
    """

    def __init__(
        self,
        index: int,
        port: int,
        key: str,
        ledger: Path,
        answered: list[float],
        *,
        pause: float = 0,
        authority: Path | None = None,
    ) -> None:
        """`answered` gets the time of each success; `pause` are the seconds between two requests.

        `authority` is the certificate of `localhost`, where the port speaks TLS.
        """
        super().__init__(daemon=True)
        self.port, self.key, self.answered, self.pause = port, key, answered, pause
        self.next = index * 10_000_000 + 1
        self.done: list[Intent] = []
        self.stopping = threading.Event()
        self.cuts = 0
        self._ledger = (ledger / f"client-{index}").open("a", buffering=1)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        if authority:
            context = ssl.create_default_context(cafile=authority)
            self._connection = http.client.HTTPSConnection("localhost", port, timeout=TIMEOUT, context=context)

    def run(self) -> None:
        with self._ledger, closing(self._connection):
            self._work()

    def _work(self) -> None:
        while not self.stopping.wait(self.pause):
            if self.done and random.random() < 0.2:
                self.ask_again(random.choice(self.done))
            else:
                self.create(Intent(self.next))
                self.next += 1

    def create(self, intent: Intent) -> None:
        """Until it is done. Once the faults are over there is an end of patience: what is left then is stuck."""
        patience = None
        while self.attempt(intent) != 201:
            if self.stopping.is_set():
                patience = patience or time.monotonic() + TIMEOUT
                if time.monotonic() > patience:
                    return
            time.sleep(random.uniform(0.01, 0.05))
        self.done.append(intent)

    def ask_again(self, intent: Intent) -> None:
        """The same request, whose answer must be the same, or another one under its key, which must be refused."""
        if random.random() < 0.9:
            self.attempt(intent)
        else:
            self.attempt(intent, body=b'{"amount": 1, "item": "other", "qty": 1, "text": "other"}')

    def attempt(self, intent: Intent, body: bytes | None = None) -> int | None:
        """Sends a request once. Returns the status, None when there was no answer."""
        asks = "same" if body is None else "other"
        self._note(intent=intent.number, asks=asks)
        began, is_cut = time.monotonic(), False
        try:
            headers = {"X-API-Key": self.key, "Content-Type": "application/json", "Idempotency-Key": f"{intent.number}"}
            self._connection.request("POST", intent.path, body or intent.body, headers)
            if not self.stopping.is_set() and random.random() < 0.01:
                self.cuts += 1
                is_cut = True
                raise ConnectionAbortedError
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._note(outcome=intent.number, asks=asks, status=None, began=began, ended=time.monotonic(), cut=is_cut)
            return None
        self._note(
            outcome=intent.number,
            asks=asks,
            status=response.status,
            began=began,
            ended=time.monotonic(),
            location=response.headers["Location"],
            request_id=response.headers["Request-Id"],
            content=content.decode(),
        )
        if response.status == 201:
            self.answered.append(time.monotonic())
        return response.status

    def _note(self, **line: Any) -> None:
        self._ledger.write(json.dumps(line) + "\n")
