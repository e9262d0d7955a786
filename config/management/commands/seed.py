"""Demo rows in bulk, by COPY. Ids come from the sequences of the tables, so a seed may run beside requests."""

import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain

from django.core.management.base import CommandParser
from django.db import connection, models, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from config import audit
from config.management.command import ServiceCommand, direct_connection
from config.management.demo.rows import (
    Row,
    build_order,
    build_post,
    build_user,
    compute_later_time,
    compute_signup_time,
)
from config.postgresql.words import get_words
from orders.models import Order
from posts.models import Post
from users.models import User

USERS_PER_BATCH = 10_000
ROWS_PER_PROGRESS_STEP = 1_000
# From this many users on, and if the table has fewer rows, indexes are built after the load.
MIN_USERS_TO_DROP_INDEXES = 100_000


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ArgumentTypeError("a whole number from 0 to 999999999")
    return int(text)


class Command(ServiceCommand):
    help = (
        "Adds demo users in bulk, with orders and posts. Existing rows stay as they are. If the command fails or is "
        "interrupted, nothing is added."
    )
    example = "manage.py seed --users 100000 --orders-per-user 2"
    interrupted = "Interrupted: nothing was added."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--users", metavar="N", type=_parse_count, required=True, help="users to add")
        for name in ("orders", "posts"):
            parser.add_argument(
                f"--{name}-per-user",
                metavar="N",
                type=_parse_count,
                default=0,
                help=f"{name} to add for each new user (default: 0)",
            )

    def handle(self, *, users: int, orders_per_user: int, posts_per_user: int, **options: object) -> None:
        started = time.monotonic()
        orders, posts = users * orders_per_user, users * posts_per_user
        with direct_connection(), connection.cursor() as cursor:
            with _progress() as bar, transaction.atomic(), audit.rows_alone():
                task = bar.add_task("Rows", total=users + orders + posts)
                _insert(cursor, users, orders_per_user, posts_per_user, partial(bar.advance, task))
                if users:
                    audit.record_write("user.created", count=users)
            self.interrupted = "Interrupted: the rows were added. PostgreSQL will update its statistics by itself."
            # Gives the planner its statistics, and index-only scans the visibility map.
            cursor.execute("VACUUM (ANALYZE, SKIP_LOCKED)")
        self.stdout.write(
            f"Added {users:,} users, {orders:,} orders and {posts:,} posts in {time.monotonic() - started:.1f} s."
        )


def _progress() -> Progress:
    """A bar, if the standard error is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def _insert(cursor: CursorWrapper, count: int, orders: int, posts: int, advance: Callable[[float], None]) -> None:
    """Inserts `count` users, and `orders` and `posts` for each of them."""
    # Deferred to the commit, the checks of millions of foreign keys would queue up in the server's memory.
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    indexes = _drop_indexes(cursor, count)
    for start in range(0, count, USERS_PER_BATCH):
        times = [compute_signup_time(at, count) for at in range(start, min(start + USERS_PER_BATCH, count))]
        users = list(zip(_allocate_ids(cursor, len(times)), times, strict=True))
        # The id makes the email unique among all seeds; the demo data has no such suffix.
        rows: Iterable[Row] = ({"id": id, **build_user(id, created_at, f".{id}")} for id, created_at in users)  # noqa: A001
        _copy(cursor, User, rows, advance)
        _copy(cursor, Order, _build_rows(build_order, users, orders), advance)
        _copy(cursor, Post, _build_rows(build_post, users, posts), advance)
    for definition in indexes:
        cursor.execute(definition)


def _drop_indexes(cursor: CursorWrapper, count: int) -> list[str]:
    """Drops the indexes before a load that is large and larger than the table: built afterwards, they take a fraction.

    This locks the tables until the commit. Returns the statements that create the indexes again.
    """
    cursor.execute("SELECT count(*) FROM (SELECT FROM users_user LIMIT %s) AS present", [count])
    if count < MIN_USERS_TO_DROP_INDEXES or cursor.fetchone() == (count,):
        return []
    seeded = (User, Order, Post)
    tables = [model._meta.db_table for model in seeded] + [words.table for words in map(get_words, seeded) if words]
    cursor.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = ANY(%s::text[]::regclass[]) AND NOT indisprimary",
        [tables],
    )
    indexes = cursor.fetchall()
    for name, _ in indexes:
        cursor.execute(f"DROP INDEX {name}")
    cursor.execute("SET LOCAL maintenance_work_mem = '512MB'")
    return [definition for _, definition in indexes]


def _allocate_ids(cursor: CursorWrapper, count: int) -> list[int]:
    """The next ids of the sequence, which no concurrent seed or request gets."""
    cursor.execute(
        "SELECT nextval((SELECT pg_get_serial_sequence(%s, 'id')::regclass)) FROM generate_series(1, %s)",
        [User._meta.db_table, count],
    )
    return [identifier for (identifier,) in cursor.fetchall()]


def _build_rows(
    build: Callable[[int, datetime], Row], users: Sequence[tuple[int, datetime]], per_user: int
) -> Iterator[Row]:
    for user_id, created_at in users:
        for number in range(user_id * per_user, (user_id + 1) * per_user):
            yield {"user_id": user_id, **build(number, compute_later_time(created_at, number))}


def _copy(
    cursor: CursorWrapper, model: type[models.Model], rows: Iterable[Row], advance: Callable[[float], None]
) -> None:
    """Adds rows that all have the same columns."""
    rows = iter(rows)
    if not (first := next(rows, None)):
        return
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, first))
    )
    with connection.wrap_database_errors, cursor.copy(statement) as copy:
        for done, row in enumerate(chain([first], rows), 1):
            copy.write_row([*row.values()])
            if done % ROWS_PER_PROGRESS_STEP == 0:
                advance(ROWS_PER_PROGRESS_STEP)
