"""A service that reads from a standby."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import NamedTuple

import psycopg

from config.local.cluster import Cluster
from tests.service import Copy, Reply, Service, ask
from tests.system.standby import Pair, paused, suspend

# For the look at a replica, and a busy machine.
MARGIN = 1.0
numbers = count()


class Deployment(NamedTuple):
    """A service with one replica, and two who use it."""

    service: Service
    pair: Pair
    administrator: str
    user: str
    path: str

    def call(self, credential: str, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """The answer to a request; empty is no credential."""
        return ask(self.service, path, method, body, **({"X-API-Key": credential} if credential else {}), **headers)

    def rename(self, credential: str) -> str:
        """The new name of the user."""
        name = f"Name {next(numbers)}"
        assert self.call(credential, "PATCH", self.path, {"name": name}).status == 200
        return name

    def writes(self, name: str) -> bool:
        """Whether the user can be renamed by whichever worker: each has connections of its own."""
        answers = [self.call(self.user, "PATCH", self.path, {"name": name}) for _ in range(8)]
        return all(answer.status == 200 for answer in answers)

    def get(self, credential: str) -> Reply:
        return self.call(credential, "GET", self.path)

    def read_name(self) -> str:
        answer = self.get(self.user)
        assert answer.status == 200, answer
        return str(answer.json()["data"]["name"])

    def paused(self) -> AbstractContextManager[None]:
        return paused(self.pair.standby)

    def reads_from_replica(self) -> bool:
        with self.paused():
            name = self.rename(self.administrator)
            return self.read_name() != name


@contextmanager
def deploy(checkout: Copy, pair: Pair, url: str, **variables: str) -> Iterator[Deployment]:
    database = {"LOCAL": "true", "DATABASE_URL": url}
    service = Service(checkout, **database, DATABASE_REPLICA_URLS=pair.standby.url, **variables)
    try:
        with psycopg.connect(pair.primary.url) as primary:
            first = (
                "SELECT DISTINCT ON (role) role, id, email FROM users_user WHERE status = 'active' ORDER BY role, id"
            )
            found = {role: (user_id, email) for role, user_id, email in primary.execute(first)}
        (_, administrator), (user_id, email) = found["admin"], found["user"]
        keys = [checkout.manage("create_api_key", name, **database).stdout.strip() for name in (administrator, email)]
        yield Deployment(service, pair, keys[0], keys[1], f"/api/v2/users/{user_id}")
    finally:
        service.stop()


@contextmanager
def frozen(server: Cluster) -> Iterator[None]:
    processes = suspend(server)
    try:
        yield
    finally:
        for process in processes:
            process.resume()
