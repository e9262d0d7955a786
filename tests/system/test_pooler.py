"""The service behind PgBouncer in transaction mode, which gives each transaction any of its connections."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import NON_DURABLE_SETTINGS, Cluster
from tests.plugins import pgbouncer
from tests.service import Copy, Service, ask, get_key, open_folder

PROGRAM = pgbouncer.PROGRAM or ""


def is_new_enough() -> bool:
    """Whether there is a PgBouncer that keeps prepared statements."""
    if not PROGRAM:
        return False
    told = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    return [int(part) for part in told.split()[1].split(".")] >= [1, 21]


pytestmark = pytest.mark.skipif(not is_new_enough(), reason="There is no PgBouncer 1.21 or later: set PGBOUNCER.")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with open_folder() as folder:
        made = Cluster(get_accessible_folder(folder / "server"), NON_DURABLE_SETTINGS)
        with made.running():
            yield made


@contextmanager
def pooled(cluster: Cluster, more: str = "") -> Iterator[dict[str, str]]:
    """The variables of a service behind a pooler with few connections."""
    with pgbouncer.pooled(cluster, PROGRAM, size=4, more=more) as url:
        yield {
            "LOCAL": "true",
            "DATABASE_URL": url,
            "DATABASE_MIGRATION_URL": cluster.url,
        }


def test_pooler_that_loses_prepared_statements_stops_the_start(cluster: Cluster, checkout: Copy) -> None:
    with pooled(cluster, "max_prepared_statements = 0") as variables:
        ended = checkout.manage("serve", **variables)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
        assert "max_prepared_statements" in ended.stderr
        # The reference prepares nothing.
        service = Service(checkout, FAST_PATH="false", **variables)
        try:
            assert service.status() == 200
        finally:
            service.stop()


def test_pooler_of_which_the_settings_say_nothing_stops_the_start(cluster: Cluster, checkout: Copy) -> None:
    with pooled(cluster) as variables:
        ended = checkout.manage("serve", LOCAL="true", DATABASE_URL=variables["DATABASE_URL"])
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "DATABASE_MIGRATION_URL" in ended.stderr


class Running:
    """A service behind a pooler, and the databases' own connection."""

    def __init__(self, service: Service, direct: psycopg.Connection[Any], pooled_url: str) -> None:
        self.service, self.direct, self.pooled_url = service, direct, pooled_url
        self.key = get_key(service.lines)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        answer = ask(self.service, path, method, body, X_API_Key=self.key)
        return answer.status, answer.json()


@pytest.fixture(scope="module")
def running(cluster: Cluster, checkout: Copy) -> Iterator[Running]:
    with pooled(cluster) as variables:
        with psycopg.connect(cluster.url, dbname="postgres", autocommit=True) as connection:
            connection.execute("DROP DATABASE service WITH (FORCE)")
            connection.execute("CREATE DATABASE service")
        service = Service(checkout, **variables)
        try:
            with psycopg.connect(cluster.url, autocommit=True) as direct:
                yield Running(service, direct, variables["DATABASE_URL"])
        finally:
            service.stop()


def test_readers_and_writers_share_few_connections(running: Running) -> None:
    def write_and_read(number: int) -> list[int]:
        status, made = running.ask("POST", "/api/v2/orders", {"item": f"Item {number}", "qty": 1})
        path = f"/api/v2/orders/{made['data']['id']}"
        return [status, running.ask("GET", path)[0], running.ask("GET", "/api/v2/orders?limit=5")[0]]

    before = running.direct.execute("SELECT count(*) FROM orders_order").fetchone()
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(write_and_read, range(100))) == [[201, 200, 200]] * 100
    after = running.direct.execute("SELECT count(*) FROM orders_order").fetchone()
    assert before
    assert after == (before[0] + 100,)


def test_nothing_is_left_on_the_connections_of_the_pooler(running: Running) -> None:
    assert running.ask("GET", "/api/v2/users")[0] == 200
    with psycopg.connect(running.pooled_url, autocommit=True) as other:
        for name, default in (("statement_timeout", "0"), ("lock_timeout", "0"), ("plan_cache_mode", "auto")):
            assert {other.execute(f"SHOW {name}").fetchone() for _ in range(10)} == {(default,)}
    locks = running.direct.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert locks == (0,)


def test_write_that_waits_for_a_lock_leaves_the_fast_lane(running: Running) -> None:
    ((user_id,),) = running.direct.execute("SELECT min(id) FROM users_user")
    path, answers = f"/api/v2/users/{user_id}", []
    waiting = threading.Thread(target=lambda: answers.append(running.ask("PATCH", path, {"name": "Later"})[0]))
    with running.direct.transaction():
        running.direct.execute("SELECT 1 FROM users_user WHERE id = %s FOR UPDATE", [user_id])
        waiting.start()
        time.sleep(0.3)
        began = time.monotonic()
        # More than there are workers, on connections of their own: each worker is asked.
        assert [running.ask("GET", "/api/v2/orders?limit=1")[0] for _ in range(8)] == [200] * 8
        assert time.monotonic() - began < 1
        assert not answers
    waiting.join()
    assert answers == [200]


def test_column_that_gets_another_type_costs_readers_nothing(running: Running) -> None:
    def read() -> set[int]:
        return {running.ask("GET", "/api/v2/orders?limit=5")[0] for _ in range(20)}

    assert read() == {200}
    for kind in ("bigint", "integer", "bigint", "integer"):
        running.direct.execute(f"ALTER TABLE orders_order ALTER qty TYPE {kind}")
        assert read() == {200}
