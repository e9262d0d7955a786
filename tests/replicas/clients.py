"""Clients of both nodes, who act for the same people and have every answer judged."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.load.client import PATIENCE, parse_head, wire
from tests.replicas.judge import Fact, Judge

# What one client does for one person before it turns to another.
MAX_DEEDS_IN_A_ROW = 12
# The tags that a person remembers of an address: an older one must not be called the present one.
TAGS = 3
POSTS_OF_ONE = 10
NEW_POSTS = 10
NEWEST = "?sort=id&order=desc&page=1&limit=2"
Values = Sequence[int]


class Person:
    """A user, whose writes come one after the other.

    Attributes:
        credentials: the headers of each.
        name, email: the numbers in them; the user changes the name, and the administrator the email.
        orders, newest_order: how many there are, and the number in the last one.
        posts: those that are there, by id.
        tags: by address, some that were seen, and what was shown with them.
    """

    def __init__(self, user_id: int, credentials: Sequence[Mapping[str, str]]) -> None:
        self.id = user_id
        self.credentials = credentials
        self.name, self.email, self.orders, self.newest_order = (
            Fact(f"{what} of user {user_id}") for what in ("name", "email", "orders", "newest order")
        )
        self.posts: dict[int, Fact] = {}
        self.is_writing = False
        self.tags: dict[str, deque[tuple[str, Values]]] = {}

    @property
    def path(self) -> str:
        return f"/api/v2/users/{self.id}"

    @property
    def row(self) -> list[Fact]:
        return [self.name, self.email]


class World:
    """What all clients share.

    Attributes:
        ports: of the nodes.
        people: who are acted for, and the administrator.
        comments: how many there are below each of the posts that all comment on, by the id of the post.
        requests: how many are still to be sent.
        statuses: how many answers had each; 0: there was no answer.
        unexpected: answers that should not have been.
    """

    def __init__(
        self, ports: Sequence[int], people: Sequence[Person], administrator: Person, posts: Sequence[int], judge: Judge
    ) -> None:
        self.ports, self.people, self.administrator, self.judge = ports, people, administrator, judge
        self.comments = {number: Fact(f"comments on post {number}") for number in posts}
        self.new_posts: deque[tuple[int, Fact]] = deque(maxlen=NEW_POSTS)
        self.requests = 0
        self.statuses: Counter[int] = Counter()
        self.unexpected: list[str] = []


class Answer(NamedTuple):
    status: int
    tag: str
    body: Any


class Connection:
    """To one node, opened when it is needed and kept."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Status 0 without an answer."""
        try:
            async with asyncio.timeout(PATIENCE):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self.port)
                reader, writer = self._streams
                writer.write(wire(self.port, method, path, headers, body))
                head = await reader.readuntil(b"\r\n\r\n")
                fields = parse_head(head)
                content = await reader.readexactly(int(fields.get("content-length", "0")))
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            return Answer(0, "", repr(error))
        if fields.get("connection") == "close":
            self.close()
        return Answer(int(head[9:12]), fields.get("etag", ""), json.loads(content) if content else None)

    def close(self) -> None:
        if self._streams:
            self._streams[1].transport.abort()
        self._streams = None


class Client:
    """Does one thing after the other, for one person after the other, on either node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._connections = [Connection(port) for port in world.ports]
        self._reads: dict[Callable[[Person], Awaitable[None]], int] = {
            self.read_own_row: 25,
            self.read_own_list: 5,
            self.read_protected: 5,
            self.read_orders: 25,
            self.read_own_post: 5,
            self.read_new_post: 10,
            self.read_comments: 10,
            self.read_row_as_administrator: 5,
        }
        self._writes: dict[Callable[[Person], Awaitable[None]], int] = {
            self.rename: 4,
            self.order: 4,
            self.post: 2,
            self.delete_post: 2,
            self.comment: 2,
            self.change_email: 2,
        }
        deeds = {**self._reads, **self._writes}
        self._deeds, self._weights = [*deeds], [*deeds.values()]

    async def run(self) -> None:
        """Until all requests are sent."""
        while self.world.requests > 0:
            person = random.choice(self.world.people)
            for deed in random.choices(self._deeds, self._weights, k=random.randint(1, MAX_DEEDS_IN_A_ROW)):
                await self._do(deed, person)
        for connection in self._connections:
            connection.close()

    async def _do(self, deed: Callable[[Person], Awaitable[None]], person: Person) -> None:
        if deed not in self._writes:
            await deed(person)
        elif not person.is_writing:
            person.is_writing = True
            try:
                await deed(person)
            finally:
                person.is_writing = False

    # --- Reads

    async def read_own_row(self, person: Person) -> None:
        await self._read(person, person.path, person.row, _show_row)

    async def read_own_list(self, person: Person) -> None:
        """A user sees itself alone."""
        await self._read(person, "/api/v2/users?page=1", person.row, lambda body: _show_row({"data": body["data"][0]}))

    async def read_protected(self, person: Person) -> None:
        """Which is read with the credential."""
        await self._read(
            person, "/api/v2/protected", person.row, lambda body: _show_row({"data": body["data"]["user"]})
        )

    async def read_orders(self, person: Person) -> None:
        path = random.choice((f"/api/v2/orders{NEWEST}", f"{person.path}/orders{NEWEST}"))
        await self._read(person, path, [person.orders, person.newest_order], _show_orders)

    async def read_own_post(self, person: Person) -> None:
        if person.posts:
            await self._read_post(person, *random.choice([*person.posts.items()]))

    async def read_new_post(self, person: Person) -> None:
        """Of whomever, and perhaps deleted."""
        if self.world.new_posts:
            await self._read_post(person, *random.choice(self.world.new_posts))

    async def _read_post(self, person: Person, number: int, fact: Fact) -> None:
        """A post is not there (0), there (1), or deleted (2), which a change of it tells, too."""
        method, body = random.choice((("GET", None), ("PATCH", {"title": "Title"})))
        path = f"/api/v2/posts/{number}"
        asked = self.world.judge.begin(person.id, f"{method} {path}", [fact], time.monotonic())
        answer = await self._ask(person, method, path, body, expected=(200, 403, 404))
        if answer:
            gone = 2 if fact.attempted == 2 else 0
            self.world.judge.end(asked, [gone if answer.status == 404 else 1])

    async def read_comments(self, person: Person) -> None:
        number, fact = random.choice([*self.world.comments.items()])
        if random.random() < 0.5:
            await self._read(person, f"/api/v2/posts/{number}", [fact], lambda body: [body["data"]["comments_count"]])
        else:
            path = f"/api/v2/posts/{number}/comments{NEWEST}"
            await self._read(person, path, [fact], lambda body: [body["meta"]["total"]])

    async def read_row_as_administrator(self, person: Person) -> None:
        await self._read(self.world.administrator, person.path, person.row, _show_row)

    async def _read(self, reader: Person, path: str, facts: Sequence[Fact], show: Callable[[Any], Values]) -> None:
        tags = reader.tags.setdefault(path, deque(maxlen=TAGS))
        tag, values = random.choice(tags) if tags and random.random() < 0.5 else ("", ())
        asked = self.world.judge.begin(reader.id, f"GET {path} {tag}", facts, time.monotonic())
        headers = {"If-None-Match": tag} if tag else {}
        answer = await self._ask(reader, "GET", path, headers=headers, expected=(200, 304))
        if answer is None:
            return
        if answer.status == 200:
            values = show(answer.body)
            if (answer.tag, values) not in tags:
                tags.append((answer.tag, values))
        self.world.judge.end(asked, values)

    # --- Writes

    async def rename(self, person: Person) -> None:
        value = person.name.attempt()
        await self._change(person, person, person.name, value, {"name": f"Name {value}"})

    async def change_email(self, person: Person) -> None:
        value = person.email.attempt()
        email = f"user-{person.id}-{value}@example.com"
        await self._change(self.world.administrator, person, person.email, value, {"email": email})

    async def _change(self, writer: Person, person: Person, fact: Fact, value: int, body: object) -> None:
        asked = self.world.judge.begin(writer.id, f"PATCH {person.path}", person.row, time.monotonic())
        answer = await self._ask(writer, "PATCH", person.path, body, expected=(200,))
        if answer:
            self.world.judge.end(asked, _show_row(answer.body))
            self._acknowledge(writer, fact, value)

    async def order(self, person: Person) -> None:
        person.orders.attempt()
        value = person.newest_order.attempt()
        answer = await self._ask(person, "POST", "/api/v2/orders", {"item": f"Item {value}", "qty": 1}, expected=(201,))
        if answer:
            self._acknowledge(person, person.orders, person.orders.written + 1)
            self._acknowledge(person, person.newest_order, value)

    async def post(self, person: Person) -> None:
        if len(person.posts) >= POSTS_OF_ONE:
            return
        answer = await self._ask(person, "POST", f"{person.path}/posts", {"title": "Title"}, expected=(201,))
        if answer:
            number = answer.body["data"]["id"]
            fact = Fact(f"post {number}")
            self._acknowledge(person, fact, fact.attempt())
            person.posts[number] = fact
            self.world.new_posts.append((number, fact))

    async def delete_post(self, person: Person) -> None:
        if not person.posts:
            return
        number, fact = random.choice([*person.posts.items()])
        value = fact.attempt()
        if await self._ask(person, "DELETE", f"/api/v2/posts/{number}", expected=(204,)):
            self._acknowledge(person, fact, value)
        del person.posts[number]
        # The next thing that it does.
        await self._read_post(person, number, fact)

    async def comment(self, person: Person) -> None:
        number, fact = random.choice([*self.world.comments.items()])
        fact.attempt()
        before, _ = fact.get_floor(person.id)
        answer = await self._ask(person, "POST", f"/api/v2/posts/{number}/comments", {"text": "T"}, expected=(201,))
        if answer:
            fact.acknowledge(fact.written + 1, time.monotonic())
            # One more than it has seen, however many others there are.
            fact.raise_floor(person.id, before + 1, "POST")

    def _acknowledge(self, writer: Person, fact: Fact, value: int) -> None:
        fact.acknowledge(value, time.monotonic())
        fact.raise_floor(writer.id, value, "a write")

    async def _ask(
        self,
        person: Person,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        expected: Sequence[int],
    ) -> Answer | None:
        """The answer, if it has a status that was expected."""
        world = self.world
        world.requests -= 1
        sent = {**random.choice(person.credentials), "Content-Type": "application/json", **(headers or {})}
        text = b"" if body is None else json.dumps(body).encode()
        answer = await random.choice(self._connections).ask(method, path, sent, text)
        world.statuses[answer.status] += 1
        if answer.status in expected:
            return answer
        world.unexpected.append(f"{method} {path}: {answer.status} {answer.body}")
        return None


def _show_row(body: Any) -> Values:
    row = body["data"]
    return [int(row["name"].split()[-1]), int(row["email"].partition("@")[0].split("-")[-1])]


def _show_orders(body: Any) -> Values:
    rows = body["data"]
    return [body["meta"]["total"], int(rows[0]["item"].split()[-1]) if rows else 0]


async def send(world: World, requests: int, clients: int) -> None:
    """Has so many clients send so many requests, or a few more."""
    world.requests = requests
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(Client(world).run())
