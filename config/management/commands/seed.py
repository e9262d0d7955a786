"""Demo rows in bulk. Ids come from the tables' own sequences, so that seeds and requests may run side by side."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, connection, models, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from config.management.command import INTERRUPTED, ServiceCommand, no_statement_timeout
from config.management.demo import rows as demo
from config.management.progress import Advance, progress
from config.models.resource import RowCount
from orders.models import Order
from posts.models import Post
from users.models import User

USERS_AT_ONCE = 10_000
ROWS_PER_STEP = 1_000
MOST_USERS = 100_000_000
MOST_PER_USER = 1_000
LARGE = 100_000


class NewUser(NamedTuple):
    id: int
    created_at: datetime


class Command(ServiceCommand):
    help = (
        "Adds demo rows in bulk after those that are there: users, and orders and posts of these users. All of them "
        "or, when it fails or is interrupted, none."
    )
    example = "manage.py seed --users 100000 --orders-per-user 2"
    interrupted = "Interrupted: the rows were added; PostgreSQL gathers its statistics of them by itself."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--users", metavar="N", required=True, help=f"users to add, up to {MOST_USERS:,}")
        for name in ("orders", "posts"):
            parser.add_argument(
                f"--{name}-per-user",
                metavar="N",
                default=0,
                help=f"{name} to add for each of them, up to {MOST_PER_USER:,} (default: 0)",
            )

    def handle(self, *, users: Any, orders_per_user: Any, posts_per_user: Any, **options: Any) -> None:
        count = _number("--users", users, MOST_USERS)
        orders = _number("--orders-per-user", orders_per_user, MOST_PER_USER)
        posts = _number("--posts-per-user", posts_per_user, MOST_PER_USER)
        started = time.monotonic()
        if count:
            with no_statement_timeout():
                with progress("Rows", count * (1 + orders + posts)) as advance:
                    _add(count, orders, posts, advance)
                _vacuum()
        self.stdout.write(
            f"Added {count:,} users, {count * orders:,} orders and {count * posts:,} posts "
            f"in {time.monotonic() - started:.1f} s."
        )


def _number(option: str, value: object, most: int) -> int:
    text = str(value)
    if not re.fullmatch("[0-9]{1,12}", text) or int(text) > most:
        raise CommandError(f"{option} must be a whole number from 0 to {most:,}, not {text!r}.")
    return int(text)


def _add(count: int, orders: int, posts: int, advance: Advance) -> None:
    """Adds all or, when it fails or is interrupted, nothing."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Left to the commit, the checks of millions of foreign keys would queue up in the server's memory.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            indexes = _drop_indexes(cursor, count)
            for start in range(0, count, USERS_AT_ONCE):
                moments = [demo.moment(at, count) for at in range(start, min(start + USERS_AT_ONCE, count))]
                people = [NewUser(*pair) for pair in zip(_new_ids(cursor, len(moments)), moments, strict=True)]
                _copy(cursor, User, ("id", *demo.DemoUser._fields), _user_rows(people), advance)
                if orders:
                    _copy(cursor, Order, ("user_id", *demo.DemoOrder._fields), _order_rows(people, orders), advance)
                if posts:
                    _copy(cursor, Post, ("user_id", *demo.DemoPost._fields), _post_rows(people, posts), advance)
            for definition in indexes:
                cursor.execute(definition)
    except KeyboardInterrupt:
        raise CommandError("Interrupted: nothing was added.", returncode=INTERRUPTED) from None
    except DatabaseError as error:
        reason = str(error).partition("\n")[0]
        raise CommandError(f"Nothing was added: {reason}") from error


def _drop_indexes(cursor: CursorWrapper, count: int) -> list[str]:
    """Drops the indexes for a load that is large and larger than what is there: made afterwards, they take a fraction.

    The tables are locked until the commit then. Returns how the indexes are made again.
    """
    cursor.execute("SELECT count(*) FROM (SELECT FROM users_user LIMIT %s) AS present", [count])
    if count < LARGE or cursor.fetchone() == (count,):
        return []
    tables = [model._meta.db_table for model in (User, Order, Post)]
    cursor.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = ANY(%s::text[]::regclass[]) AND NOT indisprimary",
        [tables],
    )
    found = cursor.fetchall()
    for name, _ in found:
        cursor.execute(f"DROP INDEX {name}")
    cursor.execute("SET LOCAL maintenance_work_mem = '512MB'")
    return [definition for _, definition in found]


def _new_ids(cursor: CursorWrapper, count: int) -> list[int]:
    """Ids that nobody else gets, neither a seed nor a request at the same time."""
    cursor.execute(
        "SELECT nextval((SELECT pg_get_serial_sequence(%s, 'id')::regclass)) FROM generate_series(1, %s)",
        [User._meta.db_table, count],
    )
    return [identifier for (identifier,) in cursor.fetchall()]


def _user_rows(people: list[NewUser]) -> Iterator[tuple[object, ...]]:
    # The id in the email keeps it apart from those of other seeds; the demo data has no such ending.
    return ((person.id, *demo.user(person.id, person.created_at, f".{person.id}")) for person in people)


def _order_rows(people: list[NewUser], each: int) -> Iterator[tuple[object, ...]]:
    for person in people:
        for number in range(person.id * each, (person.id + 1) * each):
            yield person.id, *demo.order(number, demo.soon_after(person.created_at, number))


def _post_rows(people: list[NewUser], each: int) -> Iterator[tuple[object, ...]]:
    for person in people:
        for number in range(person.id * each, (person.id + 1) * each):
            yield person.id, *demo.post(number, demo.soon_after(person.created_at, number))


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
            if done % ROWS_PER_STEP == 0:
                advance(ROWS_PER_STEP)
    advance(done % ROWS_PER_STEP)


def _vacuum() -> None:
    """Gives the planner its statistics, and walks along a million keys their visibility map, before anybody looks."""
    tables = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in (User, Order, Post, RowCount))
    with connection.cursor() as cursor:
        # What is locked, somebody else is vacuuming already.
        cursor.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {tables}")
