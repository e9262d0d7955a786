"""Requests byte for byte, for what the client of the other tests would put right before it sends."""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from config.http.errors import ErrorCode


def send(method: str, path: str, body: bytes = b"", content_type: str = "", **environ: Any) -> Any:
    """Sends a request as a stranger's program would: CSRF checks on. `headers=` and WSGI variables as given."""
    client = environ.pop("client", None) or Client(raise_request_exception=False, enforce_csrf_checks=True)
    return client.generic(method, path, body, content_type, **environ)


def error_of(response: Any, status: int, code: str) -> dict[str, Any]:
    """The error of a response, after the whole body was compared with the shape of contract section 5."""
    assert response.status_code == status, response.content[:500]
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Request-Id"]
    body = json.loads(response.content)
    assert list(body) == ["success", "error"]
    assert body["success"] is False
    error = body["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    assert error["code"] in set(ErrorCode)
    assert response.headers["Link"].split(", ")[0] == f'</docs/errors#{code}>; rel="help"'
    assert isinstance(error["message"], str)
    assert error["message"]
    assert all(set(detail) == {"field", "message"} for detail in error["details"])
    assert all(isinstance(value, str) for detail in error["details"] for value in detail.values())
    return error


def query_of(address: str) -> dict[str, str]:
    """The query parameters of an address, none of them repeated."""
    pairs = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@contextmanager
def quickly(seconds: float = 1.0) -> Iterator[None]:
    """Fails when the block takes more of the processor than a request may. Not the clock: others share the machine."""
    start = time.process_time()
    yield
    took = time.process_time() - start
    assert took < seconds or took < seconds * measure_slowness()


def measure_slowness() -> float:
    """How many times slower the processor is now than where the bounds were measured; at least 1.

    A neighbour of a virtual machine slows it to a third, for minutes.
    """
    return max(1.0, min(_take(_yardstick) for _ in range(5)) / _YARDSTICK_SECONDS)


def compare_times(run: Callable[[], object], other: Callable[[], object], tries: int = 9) -> float:
    """How many times as much of the processor a function takes as another one, by the least of some tries of each.

    They are tried by turns, since neighbours slow the processor and its memory within milliseconds.

    Args:
        run: what is measured.
        other: what it is compared with.
        tries: how often each is run.
    """
    # A collection in between would walk all objects of the tests.
    gc.collect()
    tried = [(_take(run), _take(other)) for _ in range(tries)]
    took, others = (min(seconds) for seconds in zip(*tried, strict=True))
    return took / others


_YARDSTICK_SECONDS = 0.003


def _yardstick() -> None:
    """What the interpreter does, of which a request is made: C's functions lose less where a neighbour is busy."""
    sum(number * number for number in range(75_000))


def _take(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
