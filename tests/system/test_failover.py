"""The primary is lost: a standby takes over, and the service follows without a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPMessage
from typing import Any

import pytest

from tests.service import Copy, Service, get_key, wait_for
from tests.system.standby import Pair, fetch, kill_machine, replicated

# Of an answer that waits for no time-out.
AT_ONCE_SECONDS = 1.0


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with replicated() as servers:
        yield servers


def send(service: Service, credential: str, key: str) -> HTTPConnection:
    """A connection on which a payment was sent."""
    connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
    headers = {"X-API-Key": credential, "Idempotency-Key": key, "Content-Type": "application/json"}
    connection.request("POST", "/payments", b'{"amount": 5}', headers)
    return connection


def pay(service: Service, credential: str, key: str) -> tuple[int, HTTPMessage, Any]:
    """The status, headers and body of the answer to a payment."""
    with closing(send(service, credential, key)) as connection:
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())


def test_standby_that_is_promoted_gets_the_writes_within_two_seconds(pair: Pair, checkout: Copy) -> None:
    service = Service(checkout, LOCAL="true", DATABASE_URL=pair.url)
    try:
        credential = get_key(service.lines)
        workers = service.workers()
        before = fetch(pair.primary, "SELECT count(*) FROM payments_payment")
        status, _, answered = pay(service, credential, "answered")
        assert status == 201
        with closing(send(service, credential, "not-answered")):
            wait_for(lambda: fetch(pair.standby, "SELECT count(*) FROM payments_payment") == before + 2)

        kill_machine(pair.primary)
        for number in range(8):
            began = time.monotonic()
            status, headers, body = pay(service, credential, f"refused-{number}")
            assert (status, body["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
            assert int(headers["Retry-After"]) >= 1
            assert time.monotonic() - began < AT_ONCE_SECONDS

        assert fetch(pair.standby, "SELECT pg_promote()")
        wait_for(lambda: not fetch(pair.standby, "SELECT pg_is_in_recovery()"))
        promoted = time.monotonic()
        # Several, on connections of their own: most likely each worker is asked.
        wait_for(lambda: [pay(service, credential, f"refused-{number}")[0] for number in range(8)] == [201] * 8)
        assert time.monotonic() - promoted < 2
        assert service.workers() == workers

        status, headers, body = pay(service, credential, "answered")
        assert (status, headers["Idempotent-Replayed"], body) == (201, "true", answered)
        status, headers, _ = pay(service, credential, "not-answered")
        assert (status, headers["Idempotent-Replayed"]) == (201, "true")
        assert fetch(pair.standby, "SELECT count(*) FROM payments_payment") == before + 10
    finally:
        service.stop()
