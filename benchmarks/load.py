"""The load: processes that each keep their share of the connections busy, one request after another on each.

A closed loop, as `wrk` has it: a connection sends its next request when it has the answer to the last one. Where that
said that the connection is closed, it connects anew, and that is part of the time of the next answer.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from typing import NamedTuple

PROCESSES = 2
PATIENCE = 60.0
KEY = b"{key}"  # in a request: something else each time it is sent
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)


class Load(NamedTuple):
    """What came of it: the seconds of each answer, how many answers came in time, the load's own seconds of CPU."""

    times: list[float]
    in_time: int
    cpu: float


class Generator:
    """The processes, kept from one load to the next."""

    def __init__(self) -> None:
        # Forked, they would share the connections of this process.
        self._pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"))

    def run(self, port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
        """Sends the requests in turn over and over. Raises RuntimeError for an answer that is no success."""
        processes = min(PROCESSES, connections)
        tasks = [
            self._pool.submit(_run, port, requests, (connections + number) // processes, seconds, number)
            for number in range(processes)
        ]
        parts = [task.result() for task in tasks]
        times = sorted(seconds for part in parts for seconds in part.times)
        return Load(times, sum(part.in_time for part in parts), sum(part.cpu for part in parts))


def _run(port: int, requests: Sequence[bytes], connections: int, seconds: float, number: int) -> Load:
    # The processes start at different requests, and no two runs have a key in common.
    following = _following(requests, len(requests) // PROCESSES * number, b"%d-%d-" % (time.time_ns(), number))
    selector = selectors.DefaultSelector()
    cpu, end = time.process_time(), time.perf_counter() + seconds
    for _ in range(connections):
        _Connection(port, selector).send(next(following))
    times: list[float] = []
    in_time = 0
    with selector:
        while selector.get_map():
            ready = selector.select(PATIENCE)
            if not ready:
                raise RuntimeError(f"No answer within {PATIENCE:g} s")
            for key, _ in ready:
                connection = key.data
                if not connection.receive():
                    continue
                now = time.perf_counter()
                times.append(now - connection.sent_at)
                in_time += now < end
                if now < end:
                    connection.send(next(following))
                else:
                    connection.close()
    return Load(times, in_time, time.process_time() - cpu)


def _following(requests: Sequence[bytes], start: int, stamp: bytes) -> Iterator[bytes]:
    keyed = KEY in requests[0]
    for number in count(start):
        request = requests[number % len(requests)]
        yield request.replace(KEY, b"%b%d" % (stamp, number)) if keyed else request


class _Connection:
    def __init__(self, port: int, selector: selectors.BaseSelector) -> None:
        self.port, self.selector = port, selector
        self._connect()

    def _connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(self.socket, selectors.EVENT_READ, self)
        self.is_closed = False

    def send(self, request: bytes) -> None:
        self.answer = b""
        self.sent_at = time.perf_counter()
        if self.is_closed:
            self._connect()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Reads what is there; whether the answer is whole."""
        data = self.socket.recv(1 << 16)
        self.answer = answer = self.answer + data if self.answer else data
        end = answer.find(b"\r\n\r\n")
        if end < 0 and data:
            return False
        length = _LENGTH.search(answer, 0, end + 2)
        if answer[9:10] != b"2" or length is None or not data:
            raise RuntimeError(f"Not a success: {answer[:1000].decode(errors='replace')!r}")
        is_whole = len(answer) >= end + 4 + int(length[1])
        if is_whole and _CLOSE.search(answer, 0, end + 2):
            self.close()
        return is_whole

    def close(self) -> None:
        if not self.is_closed:
            self.selector.unregister(self.socket)
            self.socket.close()
            self.is_closed = True
