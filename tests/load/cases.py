"""What is put beside the readers. Each case runs in a process of its own, and returns what it found."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from urllib.parse import urlencode

import psycopg

from tests.load.client import Answer, ask, wire
from tests.load.world import PASSWORD, Person, Target

# How long a case lasts that has no end of its own.
SECONDS = 5.0
MAX_REMOVAL = 0.1
MAX_ERASURE = 60.0
# How soon one who cannot be served at once is told so.
MAX_REFUSAL = 1.0
# What the first read after a burst may take.
MAX_FIRST_READ = 0.5
# Of a first burst of slow requests, nobody knows how long they take: some wait for 5 s, and are refused then.
MAX_WAIT_IN_VAIN = 6.5
BODIES = 60
ABANDONED = 1500
MIN_EXPORTED_ROWS = 20_000
LONG_PAGES = 16
# Beyond `lock_timeout`, so that each statement that waits for the lock sleeps for the whole of it.
SECONDS_OF_A_LOCK = 6.0


@dataclass
class Found:
    """What a case was answered.

    Attributes:
        statuses: how often which.
        notes: its figures, as text.
        broken: the bounds that it found broken, as text.
    """

    statuses: Counter[int | None] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def count(self, answers: Iterable[Answer], *expected: int) -> None:
        self.statuses.update(answer.status for answer in answers)
        if unexpected := {status: count for status, count in self.statuses.items() if status not in expected}:
            self.broken.append(f"answered {unexpected}")

    def bound(self, name: str, seconds: float, maximum: float) -> None:
        text = f"{name} {_duration(seconds)}"
        self.notes.append(text)
        if seconds > maximum:
            self.broken.append(f"{text} > {_duration(maximum)}")


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


Case = Callable[[Target], Awaitable[Found]]


async def bodies(target: Target) -> Found:
    """60 POSTs of 1 MiB at once by one user: decimals in a field that is ignored."""
    found = Found()
    answers = await asyncio.gather(*(_post_body(target, number) for number in range(BODIES)))
    found.count(answers, 413, 429)
    longest = max(answer.seconds for answer in answers)
    found.notes.append(f"all {BODIES} at once within {_duration(longest)}")
    return found


_START, _END = b'{"amount": 1, "ignored": [', b"1.5]}"
_NUMBERS = b"1234.56789, "
LARGE_BODY = _START + _NUMBERS * ((1024 * 1024 - len(_START) - len(_END)) // len(_NUMBERS)) + _END


async def _post_body(target: Target, number: int) -> Answer:
    headers = {**target.people["bodies"][0].headers, "Idempotency-Key": f"large-{time.time_ns()}-{number}"}
    return await ask(target.port, "POST", "/api/v1/payments", headers, LARGE_BODY)


async def removals(target: Target) -> Found:
    """Two users with 60,000 and 300,000 posts are removed at once."""
    found = Found()
    leaving = target.people["removals"]
    with psycopg.connect(target.database, autocommit=True) as connection:
        # Before the first request: to count them takes longer than it.
        posts = [connection.execute(_POSTS, [person.id]).fetchone() or (0, 0) for person in leaving]
        removing = (_remove(target, *each, connection) for each in zip(leaving, posts, strict=True))
        for one in await asyncio.gather(*removing):
            found.statuses += one.statuses
            found.notes += one.notes
            found.broken += one.broken
    return found


async def _remove(target: Target, person: Person, posts: tuple[int, int], connection: psycopg.Connection) -> Found:
    """Removes a user.

    Args:
        target: the service.
        person: the user.
        posts: the first one's id, and how many there are.
        connection: to the database.
    """
    found = Found()
    first, count = posts
    start = time.perf_counter()
    answer = await ask(target.port, "DELETE", f"/api/v1/users/{person.id}", target.administrator.headers)
    found.count([answer], 204)
    found.bound(f"DELETE of {count:,} posts", answer.seconds, MAX_REMOVAL)
    if answer.status != 204:
        return found
    paths = [f"/api/v1/users/{person.id}", f"/api/v1/users/{person.id}/posts", f"/api/v1/posts/{first}"]
    seen = [await ask(target.port, "GET", path, target.administrator.headers) for path in paths]
    if any(look.status != 404 for look in seen):
        found.broken.append(f"after the 204: {[look.status for look in seen]}")
    await asyncio.to_thread(wait_until_erased, connection, [person.id])
    found.bound("rows gone after", time.perf_counter() - start, MAX_ERASURE)
    return found


_POSTS = "SELECT min(id), count(*) FROM posts_post WHERE user_id = %s"
_HAS_ROWS = (
    "SELECT EXISTS (SELECT FROM posts_post WHERE user_id = ANY(%(ids)s)) "
    "OR EXISTS (SELECT FROM posts_comment WHERE user_id = ANY(%(ids)s))"
)


def wait_until_erased(connection: psycopg.Connection, ids: list[int]) -> None:
    """Waits until users own no post and no comment, and no longer than half as long again as it may take."""
    patience = time.monotonic() + MAX_ERASURE * 1.5
    while time.monotonic() < patience:
        if connection.execute(_HAS_ROWS, {"ids": ids}).fetchone() == (False,):
            return
        time.sleep(0.2)


async def admin_removal(target: Target) -> Found:
    """An administrator removes 900 users in the admin."""
    found = Found()
    fields = [("action", "delete_selected"), ("post", "yes"), *(("_selected_action", id_) for id_ in target.leaving)]
    start = time.perf_counter()
    answer = await ask(target.port, "POST", "/admin/users/user/", target.session, urlencode(fields).encode())
    found.count([answer], 302)
    found.notes.append(f"answered after {_duration(answer.seconds)}")
    with psycopg.connect(target.database, autocommit=True) as connection:
        await asyncio.to_thread(wait_until_erased, connection, target.leaving)
    found.bound("rows gone after", time.perf_counter() - start, MAX_ERASURE)
    return found


async def logins(target: Target) -> Found:
    """16 people, each at an address of its own, log in again and again."""

    def log_in(number: int, person: Person) -> Awaitable[Answer]:
        body = json.dumps({"email": person.email, "password": PASSWORD}).encode()
        headers = {"Content-Type": "application/json"}
        return ask(target.port, "POST", "/api/v1/login", headers, body, address=f"127.0.1.{number + 1}")

    found = Found()
    answers = await _ask_again(partial(log_in, *each) for each in enumerate(target.people["logins"]))
    found.count(answers, 200, 503)
    done = sorted(answer.seconds for answer in answers if answer.status == 200)
    found.notes.append(f"{len(done) / SECONDS:.0f} log-ins a second, at most {_duration(max(done, default=0))}")
    if not done:
        found.broken.append("nobody logged in")
    _bound_refusals(found, answers)
    return found


async def _ask_again(asking: Iterable[Callable[[], Awaitable[Answer]]]) -> Sequence[Answer]:
    """Asks each at the same time, again and again for as long as a case lasts."""
    end = time.perf_counter() + SECONDS

    async def repeat(ask_once: Callable[[], Awaitable[Answer]]) -> list[Answer]:
        answers = []
        while time.perf_counter() < end:
            answers.append(await ask_once())
            if answers[-1].status != 200:
                # Far sooner than Retry-After asks for.
                await asyncio.sleep(0.1)
        return answers

    return [*chain(*await asyncio.gather(*map(repeat, asking)))]


def _bound_refusals(found: Found, answers: Iterable[Answer], maximum: float = MAX_REFUSAL) -> None:
    refused = [answer for answer in answers if answer.status == 503]
    if refused:
        found.bound("503 after at most", max(answer.seconds for answer in refused), maximum)
        if any("retry-after" not in answer.headers for answer in refused):
            found.broken.append("503 without Retry-After")


async def export(target: Target) -> Found:
    """An administrator exports all users, again and again."""
    found, answers = Found(), []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        body = urlencode({"format": "ndjson"}).encode()
        answers.append(await ask(target.port, "POST", "/admin/users/user/export/", target.session, body))
    found.count(answers, 200)
    found.notes.append(f"at most {_duration(max(answer.seconds for answer in answers))}")
    rows = {answer.body.count(b"\n") for answer in answers if answer.status == 200}
    if not rows or min(rows) < MIN_EXPORTED_ROWS:
        found.broken.append(f"files of {rows} rows")
    return found


async def long_pages(target: Target) -> Found:
    """A user reads pages of 8 MB in gzip, 16 at a time."""
    found, person = Found(), target.people["long_pages"][0]
    headers = {**person.headers, "Accept-Encoding": "gzip"}
    read = partial(ask, target.port, "GET", f"/api/v2/users/{person.id}/posts?limit=100", headers)
    answers = await _ask_again([read] * LONG_PAGES)
    found.count(answers, 200, 503)
    done = [answer for answer in answers if answer.status == 200]
    found.notes.append(f"{len(done)} pages, at most {_duration(max((answer.seconds for answer in done), default=0))}")
    if {answer.headers.get("content-encoding") for answer in done} != {"gzip"}:
        found.broken.append("not coded")
    _bound_refusals(found, answers, MAX_WAIT_IN_VAIN)
    return found


async def abandoned(target: Target) -> Found:
    """1,500 GETs are sent and left within a tenth of a second."""
    found = Found()
    people = target.people["abandoned"]
    requests = [wire(target.port, "GET", "/api/v1/posts?limit=100", person.headers) for person in people]
    # Their keys are known from then on: what nobody knows counts for the address, and is refused much sooner.
    for person in people * 2:
        await ask(target.port, "GET", "/api/v1/protected", person.headers)
    start = time.perf_counter()
    connections = []
    for number in range(ABANDONED):
        connection = socket.create_connection(("127.0.0.1", target.port))
        connection.sendall(requests[number % len(requests)])
        connections.append(connection)
    sent = time.perf_counter() - start
    await asyncio.sleep(max(0.0, 0.1 - sent))
    for connection in connections:
        connection.close()
    found.notes.append(f"{ABANDONED:,} sent within {_duration(sent)} and left after {_duration(max(0.1, sent))}")
    after = await ask(target.port, "GET", "/api/v1/posts?limit=1", target.people["readers"][0].headers)
    found.count([after], 200, 503)
    found.bound("the next one answered after", after.seconds, MAX_FIRST_READ)
    return found


async def row_locks(target: Target) -> Found:
    """Four changes wait for rows that somebody holds, each for as long as a statement may."""
    found = Found()
    people = target.people["locked"]
    ids = [person.id for person in people]

    async def change(person: Person) -> Answer:
        return await ask(target.port, "PATCH", f"/api/v1/users/{person.id}", person.headers, b'{"name": "Changed"}')

    with psycopg.connect(target.database) as connection:
        connection.execute("SELECT FROM users_user WHERE id = ANY(%s) FOR UPDATE", [ids])
        changing = [asyncio.create_task(change(person)) for person in people]
        await asyncio.sleep(SECONDS_OF_A_LOCK)
        connection.rollback()
        waited = await asyncio.gather(*changing)
        found.count(waited, 200, 503)
        found.notes.append(f"answered after {_duration(min(answer.seconds for answer in waited))} at the least")
        again = await asyncio.gather(*(change(person) for person in people))
        found.count(again, 200, 503)
        rows = connection.execute("SELECT name FROM users_user WHERE id = ANY(%s)", [ids]).fetchall()
    if {answer.status for answer in again} != {200} or set(rows) != {("Changed",)}:
        found.broken.append("a change is lost")
    return found


CASES: dict[str, Case] = {
    case.__name__: case for case in (bodies, removals, admin_removal, logins, export, long_pages, abandoned, row_locks)
}


def run(name: str, target: Target) -> Found:
    return asyncio.run(CASES[name](target))  # type: ignore[arg-type]
