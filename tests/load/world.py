"""The service with its database, and in it the people and rows that the cases need."""

from __future__ import annotations

import http.client
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import psycopg

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.service import Service, deployed, manage
from tests.service import INCOMPRESSIBLE_POSTS, UNLIMITED, open_folder, temporary_copy

WORKERS = 2
USERS = 25_000
ROWS_PER_USER = 2
PASSWORD = "four plain words here"
# Two cases also ask behind a proxy. Without its header, a request is one that was sent directly.
PROXIES = {"TRUSTED_PROXIES": "1"}
# How many people each part of the load is.
PARTS = {
    "readers": 32,
    "bodies": 1,
    "logins": 16,
    "long_pages": 1,
    "abandoned": 100,
    "locked": 4,
    "removals": 2,
}
POSTS = {"removals": (60_000, 300_000)}
# A page of them takes half a second to code.
LONG_POSTS = 100
REMOVED_IN_THE_ADMIN = 900
# A comment under each so many posts.
POSTS_PER_COMMENT = 10


class Person(NamedTuple):
    id: int
    email: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"X-API-Key": self.key, "Content-Type": "application/json"}


class Target(NamedTuple):
    """What the processes of the load are told of the service."""

    port: int
    database: str
    administrator: Person
    session: dict[str, str]
    people: dict[str, list[Person]]
    leaving: list[int]


class World(NamedTuple):
    service: Service
    target: Target


@contextmanager
def running(log: Path, cases: Collection[str]) -> Iterator[World]:
    """The service on two workers and a database of its own, filled for the cases; `log` gets its log."""
    with open_folder() as folder, temporary_copy("service") as copy:
        cluster = Cluster(get_accessible_folder(folder / "server"))
        with (
            cluster.supervised(),
            deployed(copy, cluster.url, log, WORKERS, **UNLIMITED, **PROXIES) as (service, started),
        ):
            yield World(service, _fill(service, cluster.url, started, cases))


def _fill(service: Service, database: str, started: dict[str, str], cases: Collection[str]) -> Target:
    rows = ("--orders-per-user", str(ROWS_PER_USER), "--posts-per-user", str(ROWS_PER_USER))
    manage(service.copy, database, "seed", "--users", str(USERS), *rows)
    code = _PEOPLE.format(count=sum(PARTS.values()), password=PASSWORD)
    everybody = [
        Person(*row) for row in json.loads(manage(service.copy, database, "shell", "-c", code).splitlines()[-1])
    ]
    people = {part: [everybody.pop() for _ in range(count)] for part, count in PARTS.items()}
    with psycopg.connect(database, autocommit=True) as connection:
        for case in POSTS.keys() & set(cases):
            for person, posts in zip(people[case], POSTS[case], strict=True):
                connection.execute(_POSTS, [person.id, posts])
                connection.execute(_COMMENTS, [people["readers"][0].id, person.id, POSTS_PER_COMMENT])
        connection.execute(INCOMPRESSIBLE_POSTS, [people["long_pages"][0].id, LONG_POSTS])
        connection.execute("VACUUM ANALYZE")
        known = [person.id for those in people.values() for person in those]
        leaving = [row[0] for row in connection.execute(_LEAVING, [known, REMOVED_IN_THE_ADMIN]).fetchall()]
        row = connection.execute("SELECT id FROM users_user WHERE email = %s", [started["Administrator"]]).fetchone()
    assert row
    administrator = Person(row[0], started["Administrator"], started["API key"])
    session = sign_in(service.port, administrator.email, started["Password"])
    return Target(service.port, database, administrator, session, people, leaving)


# A hash takes long, so all have the same.
_PEOPLE = """
import json
from django.db import transaction
from accounts.services import create_api_key
from config import audit
from users.models import User
one = User()
one.set_password({password!r})
found = User.objects.filter(role="user", status="active").order_by("-id")[:{count}]
with audit.rows_alone(), transaction.atomic():
    User.objects.filter(pk__in=[user.pk for user in found]).update(password=one.password)
    keys = [create_api_key(user, name="load", scopes=None, expires_at=None)[1] for user in found]
print(json.dumps([[user.pk, user.email, key] for user, key in zip(found, keys)]))
"""
_POSTS = (
    "INSERT INTO posts_post (user_id, title, body) "
    "SELECT %s, 'Post ' || number, repeat('text ', 20) FROM generate_series(1, %s) AS number"
)
_COMMENTS = (
    "INSERT INTO posts_comment (post_id, user_id, text) "
    "SELECT id, %s, 'A comment' FROM posts_post WHERE user_id = %s AND id %% %s = 0"
)
_LEAVING = (
    "SELECT id FROM users_user WHERE role = 'user' AND removed_at IS NULL AND id <> ALL(%s) ORDER BY id DESC LIMIT %s"
)


def sign_in(port: int, email: str, password: str) -> dict[str, str]:
    """The headers of an administrator's browser."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/admin/login/")
    response = connection.getresponse()
    response.read()
    cookies = SimpleCookie(response.headers["Set-Cookie"])
    token = cookies["csrftoken"].value
    form = urlencode({"username": email, "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"})
    headers = {"Cookie": f"csrftoken={token}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/admin/login/", form, headers)
    response = connection.getresponse()
    response.read()
    assert response.status == 302, response.status
    for line in response.headers.get_all("Set-Cookie") or ():
        cookies.load(line)
    connection.close()
    return {
        "Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items()),
        "X-CSRFToken": cookies["csrftoken"].value,
        "Content-Type": "application/x-www-form-urlencoded",
    }
