"""A Redis for the tests alone, which can be killed and frozen."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

# It stands in QUOTA_URL alone, and nowhere in a log.
PASSWORD = "a-password-of-redis"


class RedisServer:
    """Debian's `redis-server`, which writes nothing to the disk."""

    def __init__(self, program: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/1"
        self.client = Redis.from_url(self.url, decode_responses=True)
        options = {"port": str(self.port), "bind": "127.0.0.1", "requirepass": PASSWORD, "save": "", "appendonly": "no"}
        self._command = [program, *(part for name, value in options.items() for part in (f"--{name}", value))]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.client.ping()
            except RedisConnectionError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait(10)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody listens; afterwards an empty one does."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and answers nothing."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def configured(self, name: str, value: object) -> Iterator[None]:
        before = self.client.config_get(name)[name]
        self.client.config_set(name, value)
        try:
            yield
        finally:
            self.client.config_set(name, before)

    def get_counts(self) -> Mapping[str, int]:
        """The present count of each key."""
        found: dict[str, Any] = {key: self.client.hvals(key) for key in self.client.keys("quota:*")}
        return {key: int(count) for key, (count,) in found.items()}


@contextmanager
def running() -> Iterator[RedisServer]:
    """A server that is running; skips the test where there is none on this machine."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("There is no redis-server on this machine; Debian's package of that name has it.")
    server = RedisServer(program)
    server.start()
    try:
        yield server
    finally:
        server.client.close()
        server.kill()
