"""What the tests share: people with keys, and a client that speaks JSON exactly as it is told."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import hypothesis
import psycopg
import pytest
from django.conf import settings
from django.core.signals import setting_changed
from django.db import connection
from django.dispatch import receiver
from django.test import Client
from django.test.client import ClientHandler

from accounts import logins
from accounts.hashers import Argon2idPasswordHasher
from accounts.services import create_api_key
from config.api.handlers import StacksMixin
from config.api.principal import SCOPES
from config.api.versions import versioning
from config.http.media_types import NDJSON
from config.http.middleware import get_security_headers
from config.management.command import direct_connection
from config.models import Event
from config.postgresql import row_counts
from config.server.logs import Formatter
from tests import redis_server
from tests.faults.proxy import Proxy
from tests.plugins import secrecy
from users.models import User

PASSWORD = "four plain words here"
# How JSON shows a time.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
# A hash takes 30 ms of the processor in production, and the tests make thousands.
COST_OF_A_HASH = Argon2idPasswordHasher.time_cost, Argon2idPasswordHasher.memory_cost
Argon2idPasswordHasher.time_cost, Argon2idPasswordHasher.memory_cost = 1, 64
# Imported here only inside functions: pytest rewrites the assertions of a plugin that nothing has imported before.
pytest_plugins = ["tests.service"]

# Property tests compare values; how long one example takes on a busy machine is no fault of theirs.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=25)
hypothesis.settings.register_profile("long", deadline=None, max_examples=100)
hypothesis.settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Keeps the garbage collector from the tests themselves, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


own_session = pytest.mark.skipif(
    settings.POOLED,
    reason="It looks at, sets or ends its session of PostgreSQL's; behind a pooler it has none of its own.",
)
fast_path_only = pytest.mark.skipif(not settings.FAST_PATH, reason="It tells what the accelerator saves.")


class Answer:
    """One HTTP answer, with its body read as JSON."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.status = response.status_code
        self.headers = response.headers
        is_json = response.headers.get("Content-Type") != NDJSON and response.content
        self.body = json.loads(response.content) if is_json else None

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def meta(self) -> Any:
        return self.body["meta"]

    @property
    def error(self) -> Any:
        return self.body["error"]

    @property
    def code(self) -> str:
        return self.body["error"]["code"]

    @property
    def fields(self) -> set[str]:
        """The fields that the error names."""
        return {detail["field"] for detail in self.body["error"]["details"]}

    def __repr__(self) -> str:
        return f"{self.status} {self.body}"


# Settings under which the service runs on the reference alone.
REFERENCE = {
    "FAST_PATH": False,
    "CREDENTIAL_BACKEND": "config.api.limits.quotas.CredentialBackend",
    "QUOTA_BACKEND": "config.api.limits.quotas.DatabaseQuotas",
    "REPRESENTATION_BACKEND": "config.api.representation.serializers.RepresentationBackend",
}


@receiver(setting_changed)
def _forget_settings(**options: object) -> None:
    """What is kept was made of the settings."""
    for cached in (get_security_headers, versioning.get_versions, versioning._choose, versioning._asked):
        cached.cache_clear()
    if settings.FAST_PATH:
        from config.fastpath import views

        for cached in (views._get_stack, views._resolve_form, views._get_security_headers):
            cached.cache_clear()


class _Handler(StacksMixin, ClientHandler):
    """Django's handler for tests, with the same choice between fast path and full stack as in production."""

    def get_response(self, request: Any) -> Any:
        if settings.FAST_PATH:
            from config.fastpath import views

            fast = views.build_request(request.environ)
            if fast:
                return views.get_response(fast)
        return super().get_response(request)


@cache
def _stack() -> ClientHandler:
    loaded = ClientHandler()
    _load_middleware(loaded)
    return loaded


def _share_stack(handler: ClientHandler, is_async: bool = False) -> None:
    """Takes the place of `load_middleware`, which takes 15 ms: WhiteNoise looks through all static files."""
    vars(handler).update({**vars(_stack()), "enforce_csrf_checks": handler.enforce_csrf_checks})


_load_middleware = ClientHandler.load_middleware
ClientHandler.load_middleware = _share_stack  # type: ignore[method-assign]


@cache
def _handler(checks_csrf: bool) -> ClientHandler:
    made = _Handler(checks_csrf)
    made.load_middleware()
    return made


def new_client(*, checks_csrf: bool = True) -> Client:
    """A browser of which nothing is known, and which is told from others by its cookies alone."""
    client = Client(raise_request_exception=False)
    client.handler = _handler(checks_csrf)
    return client


@dataclass
class Caller:
    """Somebody who calls the API, with the credential in these headers or in this query, or with none."""

    user: Any = None
    headers: dict[str, str] | None = None
    query: str = ""

    def __call__(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Answer:
        """Sends a request. `body` is sent as JSON, `raw` as it stands; headers are given as `x_request_id="…"`."""
        return Answer(self.fetch(method, path, body, raw=raw, **headers))

    def fetch(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Any:
        """Sends a request whose answer need not be JSON. Returns it as it came."""
        sent = {**(self.headers or {}), **{name.replace("_", "-"): value for name, value in headers.items()}}
        content_type = sent.pop("content-type", None) or sent.pop("Content-Type", "application/json")
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        if self.query:
            path += f"{'&' if '?' in path else '?'}{self.query}"
        return new_client().generic(method, path, data, content_type, headers=sent)

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("PUT", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self("DELETE", path, **headers)


def with_key(user: User, scopes: Iterable[str] = SCOPES) -> Caller:
    return Caller(user, {"X-API-Key": create_api_key(user, name="test", scopes=scopes)[1]})


def with_password(user: User, password: str = PASSWORD) -> Caller:
    from base64 import b64encode

    pair = b64encode(f"{user.email}:{password}".encode()).decode()
    return Caller(user, {"Authorization": f"Basic {pair}"})


def with_bearer_of(user: User) -> Caller:
    """A login, without the detour of proving the password."""
    return Caller(user, {"Authorization": f"Bearer {logins.log_in(user).access}"})


@pytest.fixture(scope="session")
def direct(django_db_blocker: Any) -> Iterator[ExitStack]:
    """A connection past a pooler, until the stack is closed."""
    with ExitStack() as stack:
        with django_db_blocker.unblock():
            stack.enter_context(direct_connection())
        yield stack


@pytest.fixture(scope="session")
def django_db_setup(direct: ExitStack, django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """pytest-django's, past a pooler, which keeps connections to the database that is dropped in the end."""
    with django_db_blocker.unblock():
        if os.environ.get("CITUS_URL"):
            with connection.cursor() as cursor:
                cursor.execute(Path(__file__).resolve().parent.parent.joinpath("deploy/citus.sql").read_text())
        direct.close()
    yield
    with django_db_blocker.unblock():
        direct.enter_context(direct_connection())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    """Makes users; each gets an email of its own. A password only where one is given: it costs a hash."""
    made = 0

    def make(role: str = "user", *, name: str = "Somebody", password: str | None = None, **columns: Any) -> User:
        nonlocal made
        made += 1
        email = columns.pop("email", f"{role}{made}@example.com")
        # Not by the service: what a test begins with is nobody's doing, and no event.
        user = User(name=name, email=email, role=role, **columns)
        user.set_password(password)
        user.save()
        return user

    return make


@pytest.fixture
def nobody(db: None) -> Caller:
    return Caller()


@pytest.fixture
def admin(make_user: Callable[..., User]) -> Caller:
    return with_key(make_user("admin", name="Ada Admin"))


@pytest.fixture
def support(make_user: Callable[..., User]) -> Caller:
    return with_key(make_user("support", name="Sue Support"))


@pytest.fixture
def user(make_user: Callable[..., User]) -> Caller:
    return with_key(make_user("user", name="Uma User"))


@pytest.fixture
def other(make_user: Callable[..., User]) -> Caller:
    return with_key(make_user("user", name="Otto Other"))


def signed_in(user: User) -> Client:
    """The browser of somebody who is signed in."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@pytest.fixture
def chief(make_user: Callable[..., User]) -> User:
    return make_user("admin", name="Chief", email="chief@example.com")


@pytest.fixture
def pages(chief: User) -> Client:
    """The browser of an administrator."""
    return signed_in(chief)


def find_wrong_counts() -> list[str]:
    """The tables whose counts are not what `recount` finds."""
    return [counts.table for counts in row_counts.get_all_counts() if counts.differences()]


@pytest.fixture
def at_once(transactional_db: None) -> Callable[[Iterable[Callable[[], Any]]], list[Any]]:
    """Runs calls in threads that start together, each on a connection of its own, and returns what they return."""

    def run(calls: Iterable[Callable[[], Any]]) -> list[Any]:
        waiting = list(calls)
        start = Barrier(len(waiting))

        def one(call: Callable[[], Any]) -> Any:
            try:
                start.wait()
                return call()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(waiting)) as pool:
            return [future.result() for future in [pool.submit(one, call) for call in waiting]]

    return run


def connect_elsewhere() -> psycopg.Connection[Any]:
    """Another connection to the same database."""
    return psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor})


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[psycopg.Connection[Any]]:
    """Another connection to the same database, in a transaction of its own."""
    with connect_elsewhere() as opened:
        yield opened


@pytest.fixture
def proxy(transactional_db: None) -> Iterator[Proxy]:
    """The connection of this thread leads through it."""
    settings = connection.settings_dict
    before = settings["HOST"]
    with TemporaryDirectory() as folder, Proxy(Path(folder), Path(before)) as between:
        connection.close()
        settings["HOST"] = folder
        try:
            yield between
        finally:
            settings["HOST"] = before
            connection.close()


def end_connection() -> None:
    """Has the server end the connection of this thread, which is not told."""
    with connect_elsewhere() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])


def wait_for_events() -> None:
    """Returns when the feed shows all events: it waits for older transactions of the whole server."""
    from tests.service import wait_for

    wait_for(lambda: Event.objects.committed().count() == Event.objects.count(), 120)


def wait_until_somebody_waits_for(holder: psycopg.Connection[Any]) -> None:
    """Returns when another connection waits for a lock of this one; fails when none does within ten seconds."""
    from tests.service import wait_for

    # Not pg_stat_activity, of which a transaction goes on to see what it saw first.
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    wait_for(lambda: holder.execute(waiting).fetchone(), 10)


@pytest.fixture(scope="session")
def redis() -> Iterator[redis_server.RedisServer]:
    """A Redis of this process, with whatever was counted before."""
    secrecy.watch.note(redis_server.PASSWORD, "QUOTA_URL")
    with redis_server.running() as server:
        yield server


@pytest.fixture
def one_minute() -> None:
    """Lets the test begin where a minute, by which guesses are counted, has room for it."""
    if time.time() % 60 > 54:
        time.sleep(60 - time.time() % 60)


@pytest.fixture
def told() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What the service writes on standard error, line by line."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Formatter())
    logging.getLogger().addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logging.getLogger().removeHandler(handler)
