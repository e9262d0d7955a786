"""Two nodes on a primary and two standbys, which fall behind and are killed while clients compare what they see."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from config.local.account import EmbeddedDatabaseError
from config.local.cluster import Cluster
from tests.faults.service import Service, deployed, manage
from tests.replicas.clients import Person, World, send
from tests.replicas.judge import Judge
from tests.service import ask, temporary_copy
from tests.system.standby import kill_machine, paused, primary_with_standbys
from tests.trials import describe

NODES = STANDBYS = 2
PEOPLE = 50
SHARED_POSTS = 5
CLIENTS = 12
MAX_LAG = 1.0
SECONDS_BETWEEN_FAULTS = 2.0
SECONDS_OF_A_FAULT = 3.0
ATTEMPTS_TO_START = 5
METRICS_TOKEN = "0123456789abcdef"
SETTINGS = {
    "FAST_PATH": os.environ.get("FAST_PATH", "true"),
    "RATE_LIMIT_ANONYMOUS": "0",
    "METRICS_TOKEN": METRICS_TOKEN,
    # Who issues the tokens: both nodes, and whoever makes them here.
    "PUBLIC_URL": "http://127.0.0.1:8000",
}
_READS = re.compile(r'^reads_total\{database="([^"]+)"\} (\S+)', re.MULTILINE)


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        reads: how many requests read from the primary, and from each standby.
        faults: how many there were of each kind.
    """

    judge: Judge
    statuses: Counter[int]
    unexpected: list[str]
    reads: dict[str, int]
    faults: Counter[str]
    seconds: float

    @property
    def passes(self) -> bool:
        return not (any(self.judge.violations.values()) or self.unexpected) and all(self.reads.values())

    def lines(self) -> Iterator[str]:
        requests = self.statuses.total()
        yield f"{requests:,} requests in {self.seconds:.0f} s, {requests / self.seconds:.0f} a second"
        yield f"By status: {describe(self.statuses)}; unexpected {len(self.unexpected)}"
        yield from (f"  {one}" for one in self.unexpected[:10])
        yield f"Reads by database: {describe(self.reads)}"
        yield f"Faults of standbys: {describe(self.faults) or 'none'}"
        yield f"{self.judge.compared:,} numbers compared"
        for kind, found in self.judge.violations.items():
            yield f"  {kind}: {len(found)}"
            yield from (f"    {one}" for one in found[:10])
        yield f"What others wrote was shown within {self.judge.worst_lag:.3f} s; {MAX_LAG} s are allowed"


def run(requests: int, folder: Path) -> Outcome:
    """Sends so many requests. `folder` gets the databases and the log of the service, and is open to all accounts."""
    with (
        primary_with_standbys(folder, STANDBYS, synchronous_commit="on") as (primary, *standbys),
        _running(primary, standbys, folder / "log") as nodes,
    ):
        judge = Judge(MAX_LAG)
        world = _build_world(nodes, primary, judge)
        start = time.monotonic()
        faults = asyncio.run(_send(world, requests, standbys))
        seconds = time.monotonic() - start
        names = {f"{standby.sockets}:5432": f"standby {number}" for number, standby in enumerate(standbys, 1)}
        reads = dict.fromkeys(["primary", *names.values()], 0)
        for node in nodes:
            for database, count in _READS.findall(_scrape(node)):
                reads[names.get(database, database)] += int(float(count))
        return Outcome(judge, world.statuses, world.unexpected, reads, faults, seconds)


@contextmanager
def _running(primary: Cluster, standbys: Sequence[Cluster], log: Path) -> Iterator[list[Service]]:
    urls = ",".join(standby.url for standby in standbys)
    with temporary_copy("service") as copy, ExitStack() as stack:
        variables = {"DATABASE_REPLICA_URLS": urls, **SETTINGS}
        yield [stack.enter_context(deployed(copy, primary.url, log, 1, **variables))[0] for _ in range(NODES)]


def _build_world(nodes: Sequence[Service], primary: Cluster, judge: Judge) -> World:
    code = _PEOPLE.format(people=PEOPLE, posts=SHARED_POSTS)
    made = json.loads(manage(nodes[0].copy, primary.url, "shell", "-c", code).splitlines()[-1])
    people = [Person(*person) for person in made["people"]]
    return World([node.port for node in nodes], people, Person(*made["administrator"]), made["posts"], judge)


# Half of the people have two credentials. The token is to last as long as the run.
_PEOPLE = """
import json
from datetime import timedelta
from accounts.logins import log_in
from accounts.services import create_api_key
from accounts.tokens import AccessToken
from posts.models import Post
from users import services
from users.models import User

AccessToken.lifetime = timedelta(days=1)

def with_credentials(user, has_two):
    credentials = [{{"X-API-Key": create_api_key(user, name="key")[1]}}]
    if has_two:
        credentials.append({{"Authorization": f"Bearer {{log_in(user).access}}"}})
    return user.pk, credentials

people = []
for number in range({people}):
    user = services.create(name="Name 0", email=f"user-{{number}}-0@example.com", password=None)
    people.append(with_credentials(user, number % 2))
administrator = User.objects.get(email="admin@example.com")
posts = [Post.objects.create(user=administrator, title="Shared").pk for _ in range({posts})]
print(json.dumps({{"people": people, "administrator": with_credentials(administrator, True), "posts": posts}}))
"""


async def _send(world: World, requests: int, standbys: Sequence[Cluster]) -> Counter[str]:
    faults: Counter[str] = Counter()
    disturbing = asyncio.create_task(_disturb(standbys, faults))
    await send(world, requests, CLIENTS)
    disturbing.cancel()
    with suppress(asyncio.CancelledError):
        await disturbing
    return faults


async def _disturb(standbys: Sequence[Cluster], faults: Counter[str]) -> None:
    """One fault after the other, of one standby or of all, until it is cancelled."""
    while True:
        await asyncio.sleep(random.expovariate(1 / SECONDS_BETWEEN_FAULTS))
        fault = random.choice([*FAULTS])
        faults[fault] += 1
        victims = random.sample(standbys, random.randint(1, len(standbys)))
        await asyncio.gather(*(asyncio.to_thread(FAULTS[fault], victim) for victim in victims))


def _pause(standby: Cluster) -> None:
    with paused(standby):
        time.sleep(SECONDS_OF_A_FAULT)


def _delay(standby: Cluster) -> None:
    """It is behind all the time, and yet near enough to be read from."""
    with psycopg.connect(standby.url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET recovery_min_apply_delay = '{random.randint(5, 900)}ms'")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(SECONDS_OF_A_FAULT)
        connection.execute("ALTER SYSTEM RESET recovery_min_apply_delay")
        connection.execute("SELECT pg_reload_conf()")


def _kill(standby: Cluster) -> None:
    kill_machine(standby)
    # As whoever supervises it does: on a busy machine it may take more than one attempt.
    for _ in range(ATTEMPTS_TO_START - 1):
        with suppress(EmbeddedDatabaseError):
            standby.start()
            return
    standby.start()


FAULTS: dict[str, Callable[[Cluster], None]] = {"paused": _pause, "delayed": _delay, "killed": _kill}


def _scrape(node: Service) -> str:
    return ask(node, "/metrics", Authorization=f"Bearer {METRICS_TOKEN}").content.decode()
