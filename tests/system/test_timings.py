"""What the time of an answer tells of whoever it is about: nothing. TIMINGS=10000 takes as many of each."""

import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from accounts.passwords import SECONDS_OF_A_REFUSAL
from tests.service import Copy, Service, ask, get_database_url

TIMINGS = int(os.environ.get("TIMINGS", "200"))
MAX_DIFFERENCE = 0.005
# On a machine with other work to do, more of them tell a difference from chance.
MOST_BATCHES = 8
# They wait for each other's hashes, and are held back for longer than that takes.
AT_ONCE = 4
# One that takes twice as long as those made here, and one that takes no time.
FOREIGN = {
    "bcrypt": "bcrypt$$2b$10$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
    "pbkdf2": f"phc$pbkdf2-sha256$i=1000$c2FsdA${'A' * 43}",
}
ADD_USER = """
INSERT INTO users_user (name, email, role, status, password) VALUES ('N', %s || gen_random_uuid(), 'user', 'active', %s)
RETURNING email
"""


@pytest.fixture(scope="module")
def single(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    """One worker, so that whatever is sent meets in it."""
    limits = dict.fromkeys(("RATE_LIMIT_LOGIN_ACCOUNT", "RATE_LIMIT_LOGIN_ADDRESS", "MAX_IN_FLIGHT"), "0")
    running = Service(checkout, WORKERS="1", **limits)
    yield running
    running.stop()


@pytest.fixture
def foreign(single: Service) -> Iterator[list[str]]:
    """The emails of users whose passwords were hashed elsewhere, by functions that take longer, and shorter."""
    with psycopg.connect(get_database_url(single.copy), autocommit=True) as database:
        yield [database.execute(ADD_USER, [f"{name}@x.", FOREIGN[name]]).fetchone()[0] for name in FOREIGN]
        database.execute("UPDATE users_user SET password = '!' WHERE NOT password ^@ 'argon2'")


def get_medians(emails: list[str], take: Callable[[str], float], timings: int, at_once: int = 1) -> list[float]:
    with ThreadPoolExecutor(at_once) as pool:
        seconds, medians = [*pool.map(take, emails * 5)], [0.0, 1.0]
        while max(medians) - min(medians) > MAX_DIFFERENCE and len(seconds) < MOST_BATCHES * timings * len(emails):
            # In turn, so that whatever else the machine does at a time delays all of them.
            seconds += pool.map(take, emails * timings)
            medians = [statistics.median(seconds[index :: len(emails)]) for index in range(len(emails))]
    print(f"{len(seconds) // len(emails)} of each: {[f'{median * 1000:.2f} ms' for median in medians]}")
    return medians


def test_reset_takes_the_same_time_whether_or_not_there_is_an_account(single: Service) -> None:
    def take(email: str) -> float:
        reply = ask(single, "/api/password-resets", "POST", {"email": email})
        assert (reply.status, reply.content) == (202, b'{"success":true,"data":{"expires_in":1800}}')
        return reply.seconds

    medians = get_medians(["admin@example.com", "nobody@example.com"], take, TIMINGS)
    assert max(medians) - min(medians) <= MAX_DIFFERENCE


def refuse(service: Service, email: str) -> float:
    reply = ask(service, "/api/login", "POST", {"email": email, "password": "wrong"})
    assert reply.status == 401
    return reply.seconds


def test_refused_login_takes_the_same_time_whatever_the_hash(single: Service, foreign: list[str]) -> None:
    emails = ["admin@example.com", "nobody@example.com", *foreign]
    medians = get_medians(emails, lambda email: refuse(single, email), TIMINGS // 10, AT_ONCE)
    assert min(medians) >= SECONDS_OF_A_REFUSAL
    assert max(medians) - min(medians) <= MAX_DIFFERENCE


def test_refused_login_without_other_hashes_takes_the_same_time_and_is_not_held_back(single: Service) -> None:
    medians = get_medians(
        ["admin@example.com", "nobody@example.com"], lambda email: refuse(single, email), TIMINGS // 2
    )
    assert max(medians) < SECONDS_OF_A_REFUSAL
    assert max(medians) - min(medians) <= MAX_DIFFERENCE


def test_who_is_held_back_keeps_nobody_else_waiting(single: Service, foreign: list[str]) -> None:
    key = {"X_API_Key": single.copy.manage("create_api_key", "admin@example.com").stdout.strip()}
    with ThreadPoolExecutor(20) as pool:
        guesses = [pool.submit(refuse, single, foreign[1]) for _ in range(20)]
        # Held back in threads, two of them at a time, they would take seven seconds.
        reply = ask(single, "/api/v2/users", Accept="application/x-ndjson", **key)
        assert (reply.status, reply.seconds < 3 * SECONDS_OF_A_REFUSAL) == (200, True)
        assert all(SECONDS_OF_A_REFUSAL <= guess.result() < 5 * SECONDS_OF_A_REFUSAL for guess in guesses)
