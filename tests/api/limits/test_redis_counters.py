"""Quotas that Redis counts: exact as long as it answers, and no request waits for one that does not."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import pytest

from config.api.limits import quotas, redis_counters
from config.api.limits.counters import CountersUnavailable
from config.api.limits.redis_counters import RedisCounters
from tests.api.limits.quotas import is_counted, quota_of
from tests.api.test_failures import database_away
from tests.api.wire import send
from tests.conftest import PASSWORD, with_bearer_of
from tests.redis_server import PASSWORD as REDIS_PASSWORD
from tests.service import wait_for

WINDOW = redis_counters.WINDOW_SECONDS


@pytest.fixture(autouse=True)
def _limits(settings, db):
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 5, 3


@pytest.fixture
def hasty(counted_in_redis, monkeypatch):
    """Waits for Redis and tries it again as in production, but for a shorter pause."""
    monkeypatch.setattr(redis_counters, "MAX_SECONDS_OF_AN_ANSWER", 0.05)
    monkeypatch.setattr(redis_counters, "SECONDS_BETWEEN_TRIALS", 0.2)
    monkeypatch.setattr(quotas, "_next_line", 0.0)
    redis_counters._get_counters.cache_clear()
    return counted_in_redis


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def uncounted(policy: str) -> float:
    return float(quotas.UNCOUNTED.labels(policy)._value.get())


# --- Counting


@pytest.mark.usefixtures("one_minute")
def test_keys_are_counted_in_their_order_until_the_minute_ends(counted_in_redis):
    counters = RedisCounters(counted_in_redis.url)
    found = [counters.increment(keys) for keys in (["quota:a"], ["quota:a", "quota:b", "quota:a"])]
    assert [[usage.count for usage in each] for each in found] == [[1], [2, 1, 3]]
    seconds, microseconds = counted_in_redis.client.time()
    rest = WINDOW - seconds % WINDOW - microseconds / 1_000_000
    assert found[1][0].reset == found[1][1].reset == pytest.approx(rest, abs=1)
    assert counted_in_redis.client.expiretime("quota:a") == seconds - seconds % WINDOW + WINDOW


def test_counter_of_an_earlier_minute_begins_anew(counted_in_redis):
    client = counted_in_redis.client
    present = int(client.time()[0]) // WINDOW * WINDOW
    client.hset("quota:a", str(present - WINDOW), 7)
    assert [usage.count for usage in redis_counters.increment(["quota:a"])] == [1]
    assert client.hkeys("quota:a") == [str(int(client.time()[0]) // WINDOW * WINDOW)]
    assert 0 < client.ttl("quota:a") <= WINDOW


@pytest.mark.usefixtures("one_minute")
def test_each_of_many_at_once_has_a_count_of_its_own(counted_in_redis):
    """Over several connections, as of several processes, and with several threads on each."""
    processes = [RedisCounters(counted_in_redis.url) for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda number: processes[number % 3].increment(["quota:a", "quota:b"]), range(300)))
    for position in range(2):
        assert sorted(usages[position].count for usages in found) == list(range(1, 301))


# --- Redis away


def test_requests_are_answered_uncounted_while_redis_is_away_and_counted_when_it_is_back(hasty, user, caplog):
    assert quota_of(user.get("/users")).remaining == 4
    before = uncounted("principal")
    with hasty.away():
        answers = [user.get("/users") for _ in range(8)]
        assert [(answer.status, is_counted(answer)) for answer in answers] == [(200, False)] * 8
        assert uncounted("principal") == before + 8
    wait_for(lambda: is_counted(user.get("/users")))
    (line,) = [record for record in caplog.records if record.name == quotas.logger.name]
    assert line.levelno == logging.WARNING
    assert line.getMessage().startswith("Requests are not counted against their quotas: Error 111 connecting to")


def test_silent_redis_is_waited_for_by_one_request_in_ten_seconds(hasty, user, monkeypatch):
    monkeypatch.setattr(redis_counters, "SECONDS_BETWEEN_TRIALS", 10.0)
    # Longer than a busy machine delays anything.
    monkeypatch.setattr(redis_counters, "MAX_SECONDS_OF_AN_ANSWER", 0.5)
    assert is_counted(user.get("/users"))
    counters = redis_counters._get_counters(hasty.url)
    ask = partial(pytest.raises, CountersUnavailable, counters.increment, ["quota:a"])
    with hasty.frozen():
        assert 0.5 <= timed(ask) < 0.9
        assert max(timed(ask) for _ in range(30)) < 0.4
        counters._next_trial = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(timed, [ask] * 8))[6] < 0.4
        assert user.get("/users").status == 200
    counters._next_trial = time.monotonic()
    wait_for(lambda: is_counted(user.get("/users")))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("maxmemory", 1, "used memory > 'maxmemory'"), ("min-replicas-to-write", 1, "Not enough good replicas")],
)
def test_redis_that_takes_no_counts_is_away(hasty, user, caplog, *, name, value, reason):
    assert is_counted(user.get("/users"))
    with hasty.configured(name, value):
        answers = [user.get("/users") for _ in range(3)]
        assert [(answer.status, is_counted(answer)) for answer in answers] == [(200, False)] * 3
    assert reason in caplog.text
    wait_for(lambda: is_counted(user.get("/users")))


def test_wrong_password_is_told_and_not_shown(hasty, settings, user, caplog):
    settings.QUOTA_URL = hasty.url.replace(REDIS_PASSWORD, "another-password-of-redis")
    answers = [user.get("/users") for _ in range(3)]
    assert [(answer.status, is_counted(answer)) for answer in answers] == [(200, False)] * 3
    assert "invalid username-password pair" in caplog.text
    assert "another-password-of-redis" not in caplog.text


def test_wrong_passwords_are_limited_whether_redis_is_there_or_not(hasty, make_user, nobody, settings, one_minute):
    settings.RATE_LIMIT_LOGIN_ACCOUNT, settings.RATE_LIMIT_ANONYMOUS = 2, 0
    body = {"email": make_user(password=PASSWORD).email, "password": "wrong"}
    statuses = []
    for state in (nullcontext(), hasty.frozen(), hasty.away()):
        with state:
            statuses.append(nobody.post("/api/login", body).status)
    assert statuses == [401, 401, 429]


@pytest.mark.django_db(transaction=True)
def test_database_that_is_away_limits_nobody_whose_credential_it_knows(counted_in_redis, make_user):
    caller = with_bearer_of(make_user())
    before = uncounted("principal")
    with database_away():
        answers = [send("GET", "/nowhere", headers=caller.headers) for _ in range(5)]
        without = [send("GET", "/nowhere") for _ in range(4)]
    assert [(answer.status_code, is_counted(answer)) for answer in answers] == [(404, False)] * 5
    assert uncounted("principal") == before + 5
    # Who brings none is counted as ever.
    assert [answer.status_code for answer in without] == [404] * 3 + [429]
