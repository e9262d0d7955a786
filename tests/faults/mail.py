"""Kills whoever mails, the service and its database while people reset passwords and accept invitations.

`make faults-mail KILLS=1000`, or `python -m tests.faults.mail 1000`. Each request that was answered has its message,
and each message works once. Ctrl-C ends the kills; what happened until then is told.
"""

from __future__ import annotations

import email
import http.client
import itertools
import random
import re
import socketserver
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.policy import default
from pathlib import Path

import psycopg

from tests.faults.service import DELIVERERS, Database, Deliverers, everything
from tests.faults.trial import strike
from tests.service import Service, ask, wait_for
from tests.trials import at_work, describe, list_faults, tell

PEOPLE = 6
KINDS = {"deliverer": 50, "worker": 35, "slow lane": 8, "backend": 4, "postmaster": 2, "service": 1}
CUT_COMMITS = 0.03
# Of messages: taken without an answer, and refused for now.
UNANSWERED, REFUSED = 0.02, 0.01
SECONDS_TO_DELIVER = 120.0
UNLIMITED = dict.fromkeys(("RATE_LIMIT_ANONYMOUS", "RATE_LIMIT_LOGIN_ACCOUNT", "RATE_LIMIT_LOGIN_ADDRESS"), "0")
# Half of them have a password, which nobody knows.
ADD_USERS = """
INSERT INTO users_user (name, email, role, status, password)
SELECT 'New', number || '@faults.example', 'user', 'active',
  CASE WHEN number %% 2 = 0 THEN 'argon2$argon2id$' ELSE '!' END
FROM generate_series(1, %s) AS number RETURNING email, id
"""
USES = "SELECT user_id, count(*) FROM config_auditevent WHERE event LIKE '%.used' GROUP BY user_id"
PENDING = "SELECT FROM config_outboxentry WHERE status = 'pending' LIMIT 1"


class Sink(socketserver.ThreadingTCPServer):
    """A mail server (RFC 5321), which keeps what it is sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Dialog)
        # Of each address, the token of each message by its Message-ID.
        self.tokens: dict[str, dict[str, str]] = {}
        self.received: Counter[str] = Counter()
        self.unanswered = 0

    def keep(self, content: bytes) -> None:
        message = email.message_from_bytes(content, policy=default)
        text = message.get_body(("plain",)).get_content()  # type: ignore[union-attr]
        token = re.search(r"/session/reset/(\S+)", text)[1]  # type: ignore[index]
        # At once, for whoever looks at it meanwhile.
        self.tokens.setdefault(message["To"], {})[message["Message-ID"]] = token
        self.received[message["Message-ID"]] += 1


class _Dialog(socketserver.StreamRequestHandler):
    server: Sink

    def handle(self) -> None:
        with suppress(OSError):
            self.wfile.write(b"220 sink\r\n")
            while (command := self.rfile.readline()[:4].upper()) not in {b"QUIT", b""}:
                if not self._answer(command):
                    return

    def _answer(self, command: bytes) -> bool:
        """False where the connection ends without an answer."""
        fate = random.random()
        if command == b"DATA":
            self.wfile.write(b"354 go on\r\n")
            lines = [*itertools.takewhile(lambda line: line not in {b".\r\n", b""}, self.rfile)]
            if fate < REFUSED:
                self.wfile.write(b"451 later\r\n")
                return True
            self.server.keep(b"".join(lines))
            time.sleep(random.uniform(0, 0.02))
        if command == b"DATA" and fate < REFUSED + UNANSWERED:
            self.server.unanswered += 1
            return False
        self.wfile.write(b"250 ok\r\n")
        return True


@dataclass
class Ledger:
    """What was asked for, by the number of its user: the attempts, and the statuses that each use of a link had."""

    ids: dict[str, int]
    asked: Counter[int] = field(default_factory=Counter)
    answered: list[float] = field(default_factory=list)
    used: dict[int, list[int | None]] = field(default_factory=dict)
    statuses: Counter[int | None] = field(default_factory=Counter)
    again: Counter[int | None] = field(default_factory=Counter)


class Person(threading.Thread):
    """Asks for one message after the other, and follows each link that has come, twice."""

    def __init__(self, service: Service, key: str, first: int, sink: Sink, ledger: Ledger) -> None:
        super().__init__(daemon=True)
        self._service, self._key, self._sink, self._ledger = service, key, sink, ledger
        self._numbers = itertools.count(first, PEOPLE)
        self._unread: list[int] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            self._ask(next(self._numbers))
            self._read()
        patience = time.monotonic() + SECONDS_TO_DELIVER
        while self._unread and time.monotonic() < patience:
            time.sleep(0.1)
            self._read()

    def _ask(self, number: int) -> None:
        self._unread.append(number)
        address = f"{number}@faults.example"
        while True:
            self._ledger.asked[number] += 1
            if number % 2:
                status = self._post(f"/users/{self._ledger.ids[address]}/invitations", {}, X_API_Key=self._key)
            else:
                status = self._post("/api/password-resets", {"email": address})
            if status == 202:
                self._ledger.answered.append(time.monotonic())
                return

    def _read(self) -> None:
        for number in [number for number in self._unread if self._sink.tokens.get(f"{number}@faults.example")]:
            self._unread.remove(number)
            tokens = self._sink.tokens[f"{number}@faults.example"]
            statuses = self._ledger.used[number] = []
            while not statuses or statuses[-1] in {503, None}:
                statuses.append(self._use(random.choice([*tokens.values()]), number))
            self._ledger.again.update(self._use(token, number) for token in [*tokens.values()])

    def _use(self, token: str, number: int) -> int | None:
        return self._post(f"/api/password-resets/{token}", {"password": make_password(number)})

    def _post(self, path: str, body: object, **headers: str) -> int | None:
        status = None
        with suppress(OSError, http.client.HTTPException):
            status = ask(self._service, path, "POST", body, **headers).status
        self._ledger.statuses[status] += 1
        if status in {503, None}:
            time.sleep(random.uniform(0.01, 0.05))
        return status


def make_password(number: int) -> str:
    return f"four plain words {number}"


@dataclass
class Outcome:
    """What is wrong, by its name, and what happened."""

    faults: dict[str, Collection[object]]
    told: dict[str, object]

    @property
    def passes(self) -> bool:
        return not any(self.faults.values())

    def lines(self) -> Iterator[str]:
        for name, value in self.told.items():
            yield f"{name}: {describe(value) if isinstance(value, Counter) else value}"
        yield from list_faults(self.faults)


@contextmanager
def serving() -> Iterator[Sink]:
    with Sink() as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        yield sink
        sink.shutdown()


def kill(
    number: int, database: Database, deliverers: Deliverers, ledger: Ledger, enough: threading.Event
) -> Counter[str]:
    """Returns how often what was killed."""
    done: Counter[str] = Counter()
    # Every kind, also in a short run.
    for kind in [*KINDS, *random.choices([*KINDS], [*KINDS.values()], k=number - len(KINDS))]:
        if enough.is_set():
            break
        effects = len(ledger.answered) + random.randrange(1, 5)
        # A service that starts anew on a machine with other work to do takes long.
        wait_for(lambda effects=effects: len(ledger.answered) >= effects, SECONDS_TO_DELIVER)
        if kind == "deliverer":
            deliverers.kill()
        else:
            strike(kind, deliverers.service, database, ledger.answered)
            deliverers.heal()
        done[kind] += 1
        if done.total() % 100 == 0:
            print(f"{done.total()} kills", file=sys.stderr, flush=True)
    return done


def run(kills: int, folder: Path, enough: threading.Event | None = None) -> Outcome:
    """Kills so many times, or until it is enough. `folder` gets the log of the service."""
    began = time.monotonic()
    with serving() as sink:
        settings = {"EMAIL_URL": f"smtp://127.0.0.1:{sink.server_address[1]}", **UNLIMITED}
        with everything(folder / "log", **settings) as (service, database, proxy, started):
            with psycopg.connect(database.url, autocommit=True) as connection:
                ids = dict(connection.execute(ADD_USERS, [2_000 + kills * 40]).fetchall())
            ledger, deliverers = Ledger(ids), Deliverers(service)
            key = started["API key"]
            with at_work(Person(service, key, 1 + index, sink, ledger) for index in range(PEOPLE)):
                deliverers.heal()
                proxy.rate = CUT_COMMITS
                done = kill(kills, database, deliverers, ledger, enough or threading.Event())
                proxy.rate = 0
            with psycopg.connect(database.url, autocommit=True) as connection:
                wait_for(lambda: connection.execute(PENDING).fetchone() is None, SECONDS_TO_DELIVER)
                uses = dict(connection.execute(USES).fetchall())
            refused = [
                number
                for number in random.sample([*ledger.used], min(50, len(ledger.used)))
                if not signs_in(service, number)
            ]
            deliverers.stop()
    log = (folder / "log").read_text(errors="replace")
    numbers = {f"{number}@faults.example": number for number in ledger.asked}
    repeated = sum(sink.received.values()) - len(sink.received)
    # Each kill and each cut may take from a deliverer the answer, or the COMMIT behind it.
    may_repeat = sink.unanswered + proxy.cuts.total() + done.total() * (1 + DELIVERERS)
    return Outcome(
        {
            "without a message": ledger.asked.keys() - {numbers[address] for address in sink.tokens},
            "more messages than requests": [
                address for address, tokens in sink.tokens.items() if len(tokens) > ledger.asked[numbers[address]]
            ],
            "messages sent twice for no reason": range(max(0, repeated - may_repeat)),
            "link without an effect": [
                number
                for number, statuses in ledger.used.items()
                if statuses[-1] not in {204, 404} or (statuses[-1] == 404 and len(statuses) == 1)
            ],
            "not exactly one use": [
                number for number in ledger.asked if uses.get(ids[f"{number}@faults.example"]) != 1
            ],
            "second use not refused": [*(ledger.again - Counter({404: 10**9, 503: 10**9, None: 10**9})).elements()],
            "new password refused": refused,
            "tokens in the log": [
                token for tokens in sink.tokens.values() for token in tokens.values() if token.rpartition("-")[2] in log
            ],
            "unexpected answers": ledger.statuses.keys() - {202, 204, 404, 503, None},
        },
        {
            f"{done.total()} kills in {time.monotonic() - began:.0f} s": done,
            "COMMITs cut": proxy.cuts,
            "asked for": f"{len(ledger.asked)} messages by {ledger.asked.total()} requests",
            "answers": ledger.statuses,
            "mail": f"{len(sink.received)} messages to {len(sink.tokens)} addresses, {repeated} of them sent again",
            "links used again": ledger.again,
        },
    )


def signs_in(service: Service, number: int) -> bool:
    pair = b64encode(f"{number}@faults.example:{make_password(number)}".encode()).decode()
    return ask(service, "/api/protected", Authorization=f"Basic {pair}").status == 200


if __name__ == "__main__":
    tell(lambda folder, enough: run(int(sys.argv[1]), folder, enough))
