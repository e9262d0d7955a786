"""Requests at a steady rate to a service, of whichever release, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from tests.faults.service import Service
from tests.load.arrivals import KEY, Offered, Outcome, Plan, offer
from tests.load.client import wire

CONNECTIONS = 20
MAX_SECONDS = 7200.0


class Traffic:
    """What was offered, once the block of `traffic` has ended."""

    def __init__(self) -> None:
        self.offered = Offered([], 0.0, 0.0)

    def outcomes(self, start: float, end: float) -> list[Outcome]:
        """Those of requests that were under way between two moments by `time.perf_counter`."""
        start, end = start - self.offered.start, end - self.offered.start
        return [each for each in self.offered.outcomes if each.due <= end and each.due + each.seconds >= start]


def build_requests(port: int, key: str, user: int) -> Sequence[bytes]:
    """Reads and writes of each kind, as an administrator."""
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    payment = {**headers, "Idempotency-Key": KEY.decode()}
    return [
        wire(port, "GET", f"/api/v2/users/{user}", headers),
        wire(port, "GET", "/api/v2/users?limit=20&sort=email", headers),
        wire(port, "POST", "/api/v2/payments", payment, b'{"amount": "1.00"}'),
        wire(port, "GET", f"/api/v1/users/{user}/orders", headers),
        wire(port, "POST", "/api/v2/orders", headers, b'{"item": "Green tea", "qty": 1}'),
        wire(port, "GET", "/api/v2/posts?limit=5", headers),
        wire(port, "POST", f"/api/v2/users/{user}/posts", headers, b'{"title": "A post", "body": "Words"}'),
        wire(port, "PATCH", f"/api/v2/users/{user}", headers, b'{"name": "One name"}'),
        wire(port, "GET", "/api/v2/protected", headers),
        wire(port, "PATCH", f"/api/v2/users/{user}", headers, b'{"name": "Another name"}'),
    ]


@contextmanager
def traffic(pool: Executor, service: Service, key: str, user: int, *, rate: float, stop: Path) -> Iterator[Traffic]:
    """Asks a service during the block.

    Args:
        pool: whose process does it.
        service: that is asked.
        key: of an administrator.
        user: the id of one who is read and changed.
        rate: requests a second.
        stop: a path that does not exist yet; a file there ends it.
    """
    requests = build_requests(service.port, key, user)
    plan = Plan(service.port, requests, rate, MAX_SECONDS, CONNECTIONS, stop=str(stop))
    load, found = pool.submit(offer, plan), Traffic()
    time.sleep(1)
    try:
        yield found
    finally:
        stop.touch()
        found.offered = load.result()
