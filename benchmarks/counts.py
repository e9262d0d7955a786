"""What the counts behind the totals of lists cost their writers, and whether they stay right under all of them at once.

    python -m benchmarks.counts --seconds 20 --writers 50

In a database of its own: two loads in bulk, which write two lists in opposite orders, single writers, a fold and a
recount, all at the same time and again and again. Prints deadlocks, failures and wrong counts, which should be none,
and what the database takes for one INSERT with the triggers and without.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import django
import psutil
import psycopg

from benchmarks.systems import address, environment, manage, postgresql
from config.local.cluster import Cluster

USERS = """
INSERT INTO users_user (name, email, password, role, status)
SELECT 'N', gen_random_uuid() || '@example.com', '!', 'user', 'active' FROM generate_series(1, %s)
"""
ORDERS = "INSERT INTO orders_order (user_id, item, qty) SELECT 1, 'x', 1 FROM generate_series(1, %s)"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
IN_BULK = 5_000
INSERTS, REPEATED = 1_000, 3

Write = Callable[[psycopg.Connection], object]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.counts")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--writers", type=int, default=50)
    options = parser.parse_args()
    with (
        postgresql() as cluster,
        emptied(cluster) as database,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        connection.execute(USERS, [1_000])
        price = {name: cost(connection, trigger) for name, trigger in (("without", "DISABLE"), ("with", "ENABLE"))}
        done = together(database, options.seconds, options.writers)
        wrong = differences()
        deadlocks = connection.execute(DEADLOCKS).fetchall()[0][0]
    print("| kept counts | |\n|---|---:|")
    for name, number in sorted(done.items()):
        print(f"| {name} | {number:,} |")
    print(f"| deadlocks | {deadlocks} |\n| wrong counts | {wrong} |")
    for name, microseconds in price.items():
        print(f"| INSERT of an order, {name} counts, µs of the database's processor | {microseconds:.0f} |")
    sys.exit(bool(wrong or deadlocks or any(name.startswith("failed") for name in done)))


@contextmanager
def emptied(cluster: Cluster) -> Iterator[str]:
    """The address of a database of its own, with the tables of the service and no rows; it is dropped afterwards."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS counts WITH (FORCE)")
        connection.execute("CREATE DATABASE counts")
        database = address(cluster, "counts")
        manage("product", database, "migrate", "--verbosity", "0")
        os.environ.update(environment("product", database), DJANGO_SETTINGS_MODULE="config.settings")
        django.setup()
        try:
            yield database
        finally:
            connection.execute("DROP DATABASE counts WITH (FORCE)")


def cost(connection: psycopg.Connection, trigger: str) -> float:
    """Microseconds of processor time that the server takes for one INSERT of an order: the least of a few series."""
    connection.execute(f"ALTER TABLE orders_order {trigger} TRIGGER USER")
    backend = psutil.Process(connection.info.backend_pid)

    def spent() -> float:
        times = backend.cpu_times()
        return times.user + times.system

    series = []
    for _ in range(REPEATED):
        before = spent()
        for _ in range(INSERTS):
            connection.execute("INSERT INTO orders_order (user_id, item, qty) VALUES (1, 'x', 1)", prepare=True)
        series.append((spent() - before) / INSERTS * 1e6)
    if trigger == "DISABLE":
        connection.execute("DELETE FROM orders_order")
    connection.execute("ALTER TABLE orders_order ENABLE TRIGGER USER")
    return min(series)


def together(database: str, seconds: float, writers: int) -> Counter[str]:
    """Runs all of them until the time is up. Returns how often each was done, and how often it failed of what."""
    from config.postgresql import row_counts

    kinds: list[tuple[str, Write]] = [
        ("bulk loads", partial(load, (USERS, ORDERS))),
        ("bulk loads", partial(load, (ORDERS, USERS))),
        *[("single writes", partial(write_singly, number)) for number in range(writers)],
        ("folds", lambda connection: row_counts.compact()),
        ("recounts", lambda connection: [counts.recount() for counts in row_counts.get_all_counts()]),
    ]
    done: Counter[str] = Counter()
    until, lock = time.monotonic() + seconds, threading.Lock()

    def work(name: str, write: Write) -> None:
        with psycopg.connect(database) as connection:
            while time.monotonic() < until:
                told = name
                try:
                    with connection.transaction():
                        write(connection)
                except Exception as problem:  # noqa: BLE001 - every kind of failure is counted
                    told = f"failed {name}: {type(problem).__name__}"
                with lock:
                    done[told] += 1
                # A recount keeps every writer of its table waiting.
                time.sleep(1 if name in {"folds", "recounts"} else 0)

    with ThreadPoolExecutor(len(kinds)) as threads:
        for ended in [threads.submit(work, name, write) for name, write in kinds]:
            ended.result()
    return done


def load(statements: Sequence[str], connection: psycopg.Connection) -> None:
    for statement in statements:
        connection.execute(statement, [IN_BULK])


def write_singly(number: int, connection: psycopg.Connection) -> None:
    """Adds a user and an order, changes the one, and removes the other, in an order that differs among the writers."""
    for statement in (USERS, ORDERS) if number % 2 else (ORDERS, USERS):
        connection.execute(statement, [1])
    connection.execute("UPDATE users_user SET role = 'support' WHERE id = (SELECT max(id) FROM users_user)")
    last = "SELECT id FROM orders_order ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED"
    connection.execute(f"DELETE FROM orders_order WHERE id = ({last})")


def differences() -> int:
    from config.postgresql import row_counts

    return sum(counts.differences() for counts in row_counts.get_all_counts())


if __name__ == "__main__":
    main()
