"""Where quotas are counted."""

from collections.abc import Iterator

import pytest

from config.api.limits import redis_counters
from tests.redis_server import RedisServer


@pytest.fixture
def counted_in_redis(settings, redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """Quotas are counted by a Redis in which nothing was counted yet, however busy the machine is."""
    monkeypatch.setattr(redis_counters, "MAX_SECONDS_OF_AN_ANSWER", 5.0)
    redis.client.flushall()
    settings.QUOTA_URL = redis.url
    settings.QUOTA_BACKEND = settings.QUOTA_BACKEND.replace("Database", "Redis")
    redis_counters._get_counters.cache_clear()
    # What the connection counted as a trial is none of the tests'.
    redis_counters.increment(["quota:first"])
    redis.client.flushall()
    yield redis
    redis_counters._get_counters.cache_clear()
