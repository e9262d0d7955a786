"""An open loop: requests that arrive at a rate of their own, however long those before them take.

So a service that falls behind is offered as much as before, and each answer counts from the moment when its request was
due. One process, which does little for a request: it shares the machine with what it measures.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

# In a request: something else each time it is sent.
KEY = b"{key}"
# After the last one is due. What has no answer then is a failure.
PATIENCE = 15.0
SECONDS_BETWEEN_LOOKS = 0.1
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"\r\nretry-after: *[1-9]", re.IGNORECASE)


class Plan(NamedTuple):
    """What is sent.

    Attributes:
        port: of the service or the proxy on this machine.
        requests: as bytes, sent in turn.
        rate: requests a second; None: each connection sends its next request when it has its answer.
        seconds: for so long.
        connections: that many, opened before the first request.
        authority: the file of the certificate that `localhost` has, where the port speaks TLS.
        stop: a file that ends the load when it is made, before its time.
    """

    port: int
    requests: Sequence[bytes]
    rate: float | None
    seconds: float
    connections: int
    authority: str = ""
    stop: str = ""


class Outcome(NamedTuple):
    """What became of a request.

    Attributes:
        due: when it was to be sent, in seconds since the beginning.
        seconds: from then to its whole answer.
        status: of the answer; 0 without one.
        told: whether the answer says when to try again.
        resent: whether its connection was closed before a byte of the answer came, so that it was sent once more, as
            clients do (RFC 9112, section 9.3.1).
    """

    due: float
    seconds: float
    status: int
    told: bool
    resent: bool


class Offered(NamedTuple):
    """What came of a plan.

    Attributes:
        outcomes: of all requests.
        late: how late the load itself was at most, in seconds, while it had a connection to send on.
        start: when the first request was due, by `time.perf_counter`, which all processes share.
    """

    outcomes: list[Outcome]
    late: float
    start: float


class _Connection:
    def __init__(self, plan: Plan, context: ssl.SSLContext | None) -> None:
        made = socket.create_connection(("127.0.0.1", plan.port), PATIENCE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(made, server_hostname="localhost") if context else made
        self.socket.setblocking(False)
        self.answer = b""
        self.request: bytes | None = None
        self.due = 0.0
        self.is_resent = False

    def receive(self) -> bool | None:
        """Reads what is there: whether the answer is whole; None when the other side has closed or broken it."""
        try:
            data = self.socket.recv(1 << 16)
            # What TLS has decrypted already wakes nobody.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                data += self.socket.recv(1 << 16)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return None
        if not data:
            return None
        self.answer = answer = self.answer + data if self.answer else data
        end = answer.find(b"\r\n\r\n")
        if end < 0:
            return False
        length = _LENGTH.search(answer, 0, end + 2)
        return len(answer) >= end + 4 + (int(length[1]) if length else 0)


class _Load:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.context = ssl.create_default_context(cafile=plan.authority) if plan.authority else None
        self.outcomes: list[Outcome] = []
        self.late = 0.0
        self.waiting: deque[tuple[float, bytes, bool]] = deque()
        self.idle: deque[_Connection] = deque()
        self.open: dict[int, _Connection] = {}
        self.poll = select.epoll()
        self.stamp = b"%d-" % time.time_ns()
        for _ in range(plan.connections):
            self.connect()
        self.start = time.perf_counter()

    def connect(self) -> None:
        connection = _Connection(self.plan, self.context)
        number = connection.socket.fileno()
        self.open[number] = connection
        self.poll.register(number, select.EPOLLIN)
        self.idle.append(connection)

    def close(self, connection: _Connection) -> None:
        number = connection.socket.fileno()
        del self.open[number]
        self.poll.unregister(number)
        connection.socket.close()

    def run(self) -> Offered:
        plan, sent = self.plan, count()
        end = plan.seconds
        look = 0.0
        due = 0.0
        while True:
            now = time.perf_counter() - self.start
            if plan.stop and now > look:
                look = now + SECONDS_BETWEEN_LOOKS
                if Path(plan.stop).exists():
                    end = min(end, due)
            while due <= now and due < end and (plan.rate or (self.idle and now < end)):
                number = next(sent)
                request = plan.requests[number % len(plan.requests)].replace(KEY, self.stamp + b"%d" % number)
                self.waiting.append((due if plan.rate else now, request, False))
                if plan.rate:
                    due = (number + 1) / plan.rate
                else:
                    self.send_waiting()
            self.send_waiting()
            busy = len(self.open) - len(self.idle)
            if (now >= end or due >= end) and not busy and not self.waiting:
                break
            if now > end + PATIENCE:
                self.give_up(now)
                break
            pause = max(0.0, due - now) if plan.rate and due < end else 0.05
            for number, _ in self.poll.poll(pause):
                self.hear(self.open[number])
        for connection in list(self.open.values()):
            self.close(connection)
        self.poll.close()
        return Offered(self.outcomes, self.late, self.start)

    def send_waiting(self) -> None:
        while self.waiting and self.idle:
            due, request, resent = self.waiting.popleft()
            connection = self.idle.popleft()
            connection.answer, connection.request = b"", request
            connection.due, connection.is_resent = due, resent
            if not resent:
                self.late = max(self.late, time.perf_counter() - self.start - due)
            # The other side may have closed it: then the answer tells.
            with suppress(OSError):
                connection.socket.send(request)

    def hear(self, connection: _Connection) -> None:
        whole = connection.receive()
        if whole is False:
            return
        if connection.request is None:
            # Closed while it was idle, which harms nobody.
            self.idle.remove(connection)
            self.replace(connection)
        elif whole is None:
            if connection.answer or connection.is_resent:
                self.note(connection, 0)
            else:
                self.waiting.appendleft((connection.due, connection.request, True))
            self.replace(connection)
        else:
            answer = connection.answer
            self.note(connection, int(answer[9:12]))
            connection.request = None
            if _CLOSES.search(answer, 0, answer.find(b"\r\n\r\n") + 2):
                self.replace(connection)
            else:
                self.idle.append(connection)

    def replace(self, connection: _Connection) -> None:
        self.close(connection)
        self.connect()

    def note(self, connection: _Connection, status: int) -> None:
        took = time.perf_counter() - self.start - connection.due
        told = status in {429, 503} and bool(_RETRY_AFTER.search(connection.answer))
        self.outcomes.append(Outcome(connection.due, took, status, told, connection.is_resent))

    def give_up(self, now: float) -> None:
        for connection in self.open.values():
            if connection.request is not None:
                self.note(connection, 0)
        self.outcomes += [Outcome(due, now - due, 0, told=False, resent=resent) for due, _, resent in self.waiting]


def offer(plan: Plan) -> Offered:
    """Sends what is planned, and waits for the answers."""
    return _Load(plan).run()
