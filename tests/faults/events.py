"""Changes of users and posts, and who is told of all changes: killed at random, then compared with the database."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.service import Deliverers, Service
from tests.service import CHECKOUT, DEADLINE, Reply, ask

AUTHORS, SECONDS_BETWEEN_CHANGES = 2, 0.1
# Without anything new: a delivery that has failed often is tried again after so long.
SECONDS_TO_ARRIVE = 180.0
# Beyond the deliverer's transaction in which a message is made. Its time is cut to a second.
SECONDS_OF_GRACE = 1
FIELDS = {"user": ("name", "external_id"), "post": ("title", "body")}
EVENTS = "SELECT id FROM config_event ORDER BY position, id"
TABLES = {
    "user": "users_user WHERE removed_at IS NULL",
    "order": "orders_order",
    "payment": "payments_payment",
    "post": "posts_post",
    "comment": "posts_comment",
}
TYPES = [f"{kind}.created" for kind in TABLES] + [
    f"{kind}.{it_is}" for kind in FIELDS for it_is in ("updated", "removed")
]
Resource = tuple[str, int]


def insist(service: Service, key: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    """Asks until it is done: what an attempt without an answer has created or removed is there, or gone."""
    done = {200, 201, 204, 404} | ({409} if path == "/users" else set())
    patience = time.monotonic() + DEADLINE
    while time.monotonic() < patience:
        with suppress(OSError, http.client.HTTPException):
            reply = ask(service, f"/api/v2{path}", method, body, X_API_Key=key, **headers)
            if reply.status in done:
                return reply
        time.sleep(random.uniform(0.01, 0.05))
    raise AssertionError(f"{method} {path} is stuck")


class Author(threading.Thread):
    """Creates users and posts, changes each a few times, and removes half of them.

    `histories` has what the events of each must tell, in order.
    """

    def __init__(self, service: Service, key: str, index: int) -> None:
        super().__init__(daemon=True)
        self.service, self.key, self.index = service, key, index
        self.histories: dict[Resource, list[str]] = {}
        self.stopping = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            if self.stopping.is_set():
                return
            self._live(random.choice([*FIELDS]), f"{self.index}-{number}")

    def _live(self, kind: str, name: str) -> None:
        if kind == "post":
            made = self._do("POST", "/users/1/posts", {"title": name}, Idempotency_Key=name)
            row = made.json()["data"]
        else:
            email = f"{name}@faults.example"
            self._do("POST", "/users", {"name": name, "email": email})
            (row,) = self._do("GET", f"/users?email={email}").json()["data"]
        path, history = f"/{kind}s/{row['id']}", self.histories.setdefault((kind, row["id"]), ["created"])
        for number in range(random.randrange(4)):
            field = random.choice(FIELDS[kind])
            # A value that is put twice is one change.
            self._do("PATCH", path, {field: f"{name} {number}"})
            history.append(f"updated {field}")
        if random.random() < 0.5:
            self._do("DELETE", path)
            history.append("removed")

    def _do(self, *request: Any, **headers: str) -> Reply:
        time.sleep(SECONDS_BETWEEN_CHANGES)
        return insist(self.service, self.key, *request, **headers)


class Consumer:
    """A process of `tests.faults.consumers`."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "tests.faults.consumers", *arguments]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, cwd=CHECKOUT)

    def restart(self) -> None:
        assert self._process.poll() is None, "It ended by itself."
        self.stop()
        self.start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Told:
    """The authors, a follower, and three endpoints of a receiver, two of which end halfway."""

    KINDS = {"deliverer": 12, "receiver": 6, "follower": 6}

    def __init__(self, service: Service, url: str, key: str, folder: Path) -> None:
        self.service, self.url, self.key, self.folder = service, url, key, folder
        with psycopg.connect(url) as connection:
            self.first = connection.execute("SELECT max(id) FROM config_event").fetchone()[0]  # type: ignore[index]
        # Not one that a connection of this machine may have while nobody listens.
        self.ports = random.sample(range(20_000, 30_000), 3)
        self.paths, endpoints = [], []
        for port in self.ports:
            body = {"url": f"http://127.0.0.1:{port}/", "types": TYPES}
            webhook = insist(service, key, "POST", "/webhooks", body).json()["data"]
            self.paths.append(f"/webhooks/{webhook['id']}")
            endpoints += [str(port), webhook["secret"]]
        # When the end of an endpoint was answered, by its port.
        self.ends: dict[int, float] = {}
        self.deliverers = Deliverers(service)
        self.consumers = {
            "follower": Consumer("follower", str(folder / "followed"), service.url, key),
            "receiver": Consumer("receiver", str(folder), *endpoints),
        }
        self.authors = [Author(service, key, index) for index in range(AUTHORS)]

    @contextmanager
    def running(self) -> Iterator[Told]:
        self.deliverers.heal()
        try:
            yield self
        finally:
            self.deliverers.stop()
            for consumer in self.consumers.values():
                consumer.stop()

    def kill(self, kind: str) -> None:
        if kind == "deliverer":
            self.deliverers.kill()
        else:
            self.consumers[kind].restart()

    def end_endpoints(self) -> None:
        """Disables the second one, and removes the third."""
        requests = ("PATCH", {"status": "disabled"}), ("DELETE", None)
        for port, path, (method, body) in zip(self.ports[1:], self.paths[1:], requests, strict=True):
            insist(self.service, self.key, method, path, body)
            self.ends[port] = time.time()

    def wait(self) -> dict[str, list[Any]]:
        """Lets everything arrive. Returns what is wrong after it, by its name."""
        summary, patience = "", 0.0
        while True:
            self.deliverers.heal()
            faults = self._compare()
            if self.summary != summary:
                summary, patience = self.summary, time.monotonic() + SECONDS_TO_ARRIVE
            if not any(faults.values()) or time.monotonic() > patience:
                return faults
            time.sleep(2)

    def _compare(self) -> dict[str, list[Any]]:
        with psycopg.connect(self.url) as connection:
            written = connection.execute(EVENTS).fetchall()
            rows = {
                (kind, id_)
                for kind, table in TABLES.items()
                for (id_,) in connection.execute(f"SELECT id FROM {table}").fetchall()  # noqa: S608 - our own names
            }
        with closing(sqlite3.connect(self.folder / "followed", timeout=60)) as store:
            followed = [json.loads(event) for (event,) in store.execute("SELECT event FROM followed ORDER BY rowid")]
        ids, places = [event["id"] for event in followed], {row[0]: place for place, row in enumerate(written)}
        due = {f"event-{id_}" for id_ in places if id_ > self.first}
        received = {line["webhook_id"] for line in self._read(f"received-{self.ports[0]}")}
        requests = self._read("requests")
        self.summary = f"{len(ids)} events followed, {len(received)} of them received in {len(requests)} requests"
        return {
            "event missed": [*places.keys() ^ {*ids}],
            "event twice": [id_ for id_, count in Counter(ids).items() if count > 1],
            "event out of order": [
                pair for pair in itertools.pairwise(ids) if places.get(pair[0], 0) > places.get(pair[1], 0)
            ],
            "contradicts its row": find_contradictions(followed, rows, self.authors),
            "webhook missed": [*due - received],
            "signature refused": [line for line in requests if line[2] == 401],
            "webhook after its end": [
                line for line in requests if line[1] > self.ends.get(line[0], float("inf")) + SECONDS_OF_GRACE
            ],
        }

    def _read(self, name: str) -> list[Any]:
        file = self.folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def find_contradictions(followed: list[Any], rows: set[Resource], authors: list[Author]) -> list[Any]:
    """The resources whose events, as they came, are not those of a row that is there or gone."""
    histories: dict[Resource, list[str]] = defaultdict(list)
    for event in followed:
        action = event["type"].partition(".")[2]
        resource = event["resource"]["type"], event["resource"]["id"]
        histories[resource].append(" ".join([action, *(event["changed"] or ())]))
    known = {resource: history for author in authors for resource, history in author.histories.items()}
    return [
        (resource, history, known.get(resource))
        for resource in rows | known.keys() | histories.keys()
        for history in [histories[resource]]
        if history != known.get(resource, history)
        or not re.fullmatch(r"created( updated( \w+)+)*" + ("" if resource in rows else " removed"), " ".join(history))
    ]
