from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection


@pytest.fixture
def at_once(transactional_db: None) -> Callable[[Iterable[Callable[[], Any]]], list[Any]]:
    """Runs calls in threads that start together, each on a connection of its own, and returns what they return."""

    def run(calls: Iterable[Callable[[], Any]]) -> list[Any]:
        waiting = list(calls)
        start = Barrier(len(waiting))

        def one(call: Callable[[], Any]) -> Any:
            try:
                start.wait()
                return call()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(waiting)) as pool:
            return [future.result() for future in [pool.submit(one, call) for call in waiting]]

    return run
