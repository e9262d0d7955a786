"""Demo rows in bulk, by COPY. Ids come from the sequences of the tables, so a seed may run beside requests."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, connection, models, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from config import audit
from config.management.command import INTERRUPTED, ServiceCommand, direct_connection
from config.management.demo.rows import (
    DemoOrder,
    DemoPost,
    DemoUser,
    build_order,
    build_post,
    build_user,
    compute_signup_time,
    compute_time_within_month,
)
from config.management.progress import Advance, show_progress
from config.models import RowCount
from config.postgresql.words import get_words
from orders.models import Order
from posts.models import Post
from users.models import User

USERS_PER_BATCH = 10_000
ROWS_PER_PROGRESS_STEP = 1_000
MAX_USERS = 100_000_000
MAX_ROWS_PER_USER = 1_000
# From this many users on, and if the table has fewer rows, indexes are built after the load.
MIN_USERS_TO_DROP_INDEXES = 100_000


class NewUser(NamedTuple):
    id: int
    created_at: datetime


class Command(ServiceCommand):
    help = (
        "Adds demo users in bulk, with orders and posts. Existing rows stay as they are. If the command fails or is "
        "interrupted, nothing is added."
    )
    example = "manage.py seed --users 100000 --orders-per-user 2"
    interrupted = "Interrupted: the rows were added. PostgreSQL will update its statistics by itself."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--users", metavar="N", required=True, help=f"users to add, at most {MAX_USERS:,}")
        for name in ("orders", "posts"):
            parser.add_argument(
                f"--{name}-per-user",
                metavar="N",
                default=0,
                help=f"{name} to add for each new user, at most {MAX_ROWS_PER_USER:,} (default: 0)",
            )

    def handle(self, *, users: object, orders_per_user: object, posts_per_user: object, **options: object) -> None:
        count = _parse_number("--users", users, MAX_USERS)
        orders = _parse_number("--orders-per-user", orders_per_user, MAX_ROWS_PER_USER)
        posts = _parse_number("--posts-per-user", posts_per_user, MAX_ROWS_PER_USER)
        started = time.monotonic()
        if count:
            with direct_connection():
                with show_progress("Rows", count * (1 + orders + posts)) as advance:
                    _insert(count, orders, posts, advance)
                _vacuum()
        self.stdout.write(
            f"Added {count:,} users, {count * orders:,} orders and {count * posts:,} posts "
            f"in {time.monotonic() - started:.1f} s."
        )


def _parse_number(option: str, value: object, maximum: int) -> int:
    text = str(value)
    if not re.fullmatch("[0-9]{1,12}", text) or int(text) > maximum:
        raise CommandError(f"{option} must be a whole number from 0 to {maximum:,}, not {text!r}.")
    return int(text)


def _insert(count: int, orders: int, posts: int, advance: Advance) -> None:
    """Inserts `count` users, and `orders` and `posts` for each of them, in one transaction.

    Raises:
        CommandError: the load failed or was interrupted, and nothing was inserted.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Deferred to the commit, the checks of millions of foreign keys would queue up in the server's memory.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            indexes = _drop_indexes(cursor, count)
            for start in range(0, count, USERS_PER_BATCH):
                times = [compute_signup_time(at, count) for at in range(start, min(start + USERS_PER_BATCH, count))]
                users = [NewUser(*pair) for pair in zip(_allocate_ids(cursor, len(times)), times, strict=True)]
                _copy(cursor, User, ("id", *DemoUser._fields), _build_users(users), advance)
                if orders:
                    _copy(cursor, Order, ("user_id", *DemoOrder._fields), _build_orders(users, orders), advance)
                if posts:
                    _copy(cursor, Post, ("user_id", *DemoPost._fields), _build_posts(users, posts), advance)
            if count:
                with audit.rows_alone():
                    audit.record_write("user.created", count=count)
            for definition in indexes:
                cursor.execute(definition)
    except KeyboardInterrupt:
        raise CommandError("Interrupted: nothing was added.", returncode=INTERRUPTED) from None
    except DatabaseError as error:
        reason = str(error).partition("\n")[0]
        raise CommandError(f"Nothing was added: {reason}") from error


def _drop_indexes(cursor: CursorWrapper, count: int) -> list[str]:
    """Drops the indexes before a load that is large and larger than the table: built afterwards, they take a fraction.

    This locks the tables until the commit. Returns the statements that create the indexes again.
    """
    cursor.execute("SELECT count(*) FROM (SELECT FROM users_user LIMIT %s) AS present", [count])
    if count < MIN_USERS_TO_DROP_INDEXES or cursor.fetchone() == (count,):
        return []
    tables = _get_tables(User, Order, Post)
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


def _build_users(users: list[NewUser]) -> Iterator[tuple[object, ...]]:
    # The id makes the email unique among all seeds; the demo data has no such suffix.
    return ((user.id, *build_user(user.id, user.created_at, f".{user.id}")) for user in users)


def _build_orders(users: list[NewUser], per_user: int) -> Iterator[tuple[object, ...]]:
    for user in users:
        for number in range(user.id * per_user, (user.id + 1) * per_user):
            yield user.id, *build_order(number, compute_time_within_month(user.created_at, number))


def _build_posts(users: list[NewUser], per_user: int) -> Iterator[tuple[object, ...]]:
    for user in users:
        for number in range(user.id * per_user, (user.id + 1) * per_user):
            yield user.id, *build_post(number, compute_time_within_month(user.created_at, number))


def _copy(
    cursor: CursorWrapper,
    model: type[models.Model],
    columns: Iterable[str],
    rows: Iterator[tuple[object, ...]],
    advance: Advance,
) -> None:
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    done = 0
    with connection.wrap_database_errors, cursor.copy(statement) as copy:
        for done, row in enumerate(rows, 1):
            copy.write_row(row)
            if done % ROWS_PER_PROGRESS_STEP == 0:
                advance(ROWS_PER_PROGRESS_STEP)
    advance(done % ROWS_PER_PROGRESS_STEP)


def _vacuum() -> None:
    """Gives the planner its statistics, and index-only scans the visibility map."""
    tables = ", ".join(map(connection.ops.quote_name, _get_tables(User, Order, Post, RowCount)))
    with connection.cursor() as cursor:
        # A table that is locked is being vacuumed by another process.
        cursor.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {tables}")


def _get_tables(*tables: type[models.Model]) -> list[str]:
    """The tables of models, and the tables of their words."""
    words = [words.table for model in tables if (words := get_words(model))]
    return [*(model._meta.db_table for model in tables), *words]
