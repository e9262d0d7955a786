"""Counting requests in Redis, exactly across every process that shares it: the database writes nothing for them.

Whoever imports it takes 8 MB of each process, and a tenth of a second.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from config.api.limits.counters import WINDOW_SECONDS, CountersUnavailable, Usage

# On a busy machine Redis and the thread that asks it wait for a processor.
MAX_SECONDS_OF_AN_ANSWER = 0.2
# After a failure, one request in so many seconds tries Redis; the others in between are not counted.
SECONDS_BETWEEN_TRIALS = 10.0

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


def increment(keys: Sequence[str]) -> list[Usage]:
    """Counts requests in the present minute, in one round trip.

    Args:
        keys: under which they count; one may come several times.

    Returns:
        The state of each counter afterwards.

    Raises:
        CountersUnavailable: after 200 ms where Redis is tried, at once between two trials.
    """
    return _get_counters(settings.QUOTA_URL).increment(keys)


class RedisCounters:
    """The counters of one Redis, which the threads of a process share.

    Args:
        url: of the settings.
    """

    def __init__(self, url: str) -> None:
        client = Redis.from_url(
            url,
            socket_timeout=MAX_SECONDS_OF_AN_ANSWER,
            socket_connect_timeout=MAX_SECONDS_OF_AN_ANSWER,
            # A command that is sent twice would count twice.
            retry=Retry(NoBackoff(), 0),
        )
        self._count: Any = client.register_script(INCREMENT)
        self._failure = ""
        self._next_trial = 0.0

    def increment(self, keys: Sequence[str]) -> list[Usage]:
        """See `increment` of the module."""
        if self._failure:
            if time.monotonic() < self._next_trial:
                raise CountersUnavailable(self._failure)
            # Those that come now do not wait for what this one finds out.
            self._next_trial = time.monotonic() + SECONDS_BETWEEN_TRIALS
        try:
            *counts, microseconds = self._count(keys)
        except RedisError as error:
            self._failure, self._next_trial = str(error), time.monotonic() + SECONDS_BETWEEN_TRIALS
            raise CountersUnavailable(self._failure) from error
        self._failure = ""
        return [Usage(count, microseconds / 1_000_000) for count in counts]


_get_counters = lru_cache(maxsize=1)(RedisCounters)
