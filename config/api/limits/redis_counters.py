"""Counting requests in Redis, exactly across every process that shares it: the database writes nothing for them.

Whoever imports it takes 8 MB of each process, and a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import lru_cache
from threading import Lock, Thread

from django.conf import settings
from redis import ConnectionPool
from redis.connection import ConnectionInterface
from redis.exceptions import RedisError

from config.api.limits.counters import WINDOW_SECONDS, CountersUnavailable, Usage

# On a busy machine Redis and the thread that asks it wait for a processor.
MAX_SECONDS_OF_AN_ANSWER = 0.2
# After a failure, nobody waits for Redis before it has counted for the thread that connects anew.
SECONDS_BETWEEN_TRIALS = 1.0

# A hash has one field, which is the present window by the clock of Redis: what a row of config.models.Counter has.
INCREMENT = f"""
local now = redis.call('TIME')
local window = now[1] - now[1] % {WINDOW_SECONDS}
local answer = {{}}
for position, key in ipairs(KEYS) do
    answer[position] = redis.call('HINCRBY', key, window, 1)
    if answer[position] == 1 then
        redis.call('DEL', key)
        redis.call('HSET', key, window, 1)
        redis.call('EXPIREAT', key, window + {WINDOW_SECONDS})
    end
end
answer[#KEYS + 1] = (window + {WINDOW_SECONDS} - now[1]) * 1000000 - now[2]
return answer
"""
# A Redis that is full, or a replica that only reads, answers and does not count.
TRIAL = ("quota:trial",)


def increment(keys: Sequence[str]) -> list[Usage]:
    """Counts requests in the present minute, in one round trip.

    Args:
        keys: under which they count; one may come several times.

    Returns:
        Where the counter of each stands after it.

    Raises:
        CountersUnavailable: after 200 ms the first time, and then at once until Redis counts again.
    """
    return _get_counters(settings.QUOTA_URL).increment(keys)


def prepare() -> None:
    """Connects before the first request, where Redis answers within a second."""
    _get_counters(settings.QUOTA_URL).prepare()


@lru_cache(maxsize=1)
def _get_counters(url: str) -> RedisCounters:
    return RedisCounters(url)


class RedisCounters:
    """The counters of one Redis, which the threads of a process ask over one connection.

    A thread of its own connects, so that no request waits for a name server, or for a Redis that is away.

    Args:
        url: of the settings.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = Lock()
        self._connected: Future[ConnectionInterface] | None = None
        self._failure = "It has not answered yet."

    def prepare(self) -> None:
        """See `prepare` of the module."""
        with self._lock:
            connected = self._connected = self._connected or self._connect()
        wait([connected], SECONDS_BETWEEN_TRIALS)

    def increment(self, keys: Sequence[str]) -> list[Usage]:
        """See `increment` of the module."""
        with self._lock:
            connection = self._get_connection()
            try:
                return ask(connection, keys)
            except RedisError as error:
                connection.disconnect()  # type: ignore[no-untyped-call]  # the library leaves it out
                self._failure = str(error)
                self._connected = self._connect(after=SECONDS_BETWEEN_TRIALS)
                raise CountersUnavailable(self._failure) from error

    def _get_connection(self) -> ConnectionInterface:
        connected = self._connected
        if connected is None or (connected.done() and _is_closed(connected.result())):
            connected = self._connected = self._connect()
            wait([connected], MAX_SECONDS_OF_AN_ANSWER)
        if not connected.done():
            raise CountersUnavailable(self._failure)
        return connected.result()

    def _connect(self, after: float = 0.0) -> Future[ConnectionInterface]:
        """Has a thread connect, again and again until Redis counts.

        Args:
            after: seconds until the first trial.
        """
        connected: Future[ConnectionInterface] = Future()

        def run() -> None:
            time.sleep(after)
            while True:
                try:
                    connection = connect(self._url, MAX_SECONDS_OF_AN_ANSWER)
                    ask(connection, TRIAL)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is told with what is not counted
                    self._failure = str(error)
                    time.sleep(SECONDS_BETWEEN_TRIALS)
                else:
                    connected.set_result(connection)
                    return

        Thread(target=run, name="redis", daemon=True).start()
        return connected


def connect(url: str, seconds: float) -> ConnectionInterface:
    """A connection to Redis.

    Args:
        url: of the settings.
        seconds: that it may take to connect, and each answer after that.

    Raises:
        RedisError: it is away, or refuses the password.
    """
    # The second version of the protocol begins without an exchange.
    pool = ConnectionPool.from_url(
        url, socket_timeout=seconds, socket_connect_timeout=seconds, protocol=2, driver_info=None
    )
    connection = pool.make_connection()
    connection.connect()  # type: ignore[no-untyped-call]  # the library leaves it out
    return connection


def ask(connection: ConnectionInterface, keys: Sequence[str]) -> list[Usage]:
    """Counts as `increment` does, over a connection.

    Raises:
        RedisError: it was not counted, or nobody knows whether it was.
    """
    connection.send_command("EVAL", INCREMENT, len(keys), *keys)  # type: ignore[no-untyped-call]  # the library leaves it out
    *counts, microseconds = connection.read_response()
    return [Usage(count, microseconds / 1_000_000) for count in counts]


def _is_closed(connection: ConnectionInterface) -> bool:
    """Whether Redis has ended a connection: between two answers it sends nothing else."""
    try:
        return connection.can_read()
    except RedisError:
        return True
