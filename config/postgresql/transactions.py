"""Writing in one transaction, again where PostgreSQL asks for it; its locks; and whether PostgreSQL is unavailable."""

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    Error,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
    router,
    transaction,
)
from django.db.models import Model, QuerySet
from psycopg.errors import (
    DeadlockDetected,
    FeatureNotSupported,
    IdleInTransactionSessionTimeout,
    LockNotAvailable,
    ReadOnlySqlTransaction,
    SerializationFailure,
)

from config.postgresql.compiling import fetch_rows

Result = TypeVar("Result")

# SQL that is true, for a statement in its own transaction whose COMMIT must not wait for a disk or a standby.
COMMIT_AT_ONCE = "(SELECT set_config('synchronous_commit', 'off', true)) = 'off'"

_ATTEMPTS = 3
_SECONDS_BEFORE_ANOTHER_TRY = 0.1
_RUN_AGAIN = DeadlockDetected | SerializationFailure | ReadOnlySqlTransaction


class ConcurrentWrite(OperationalError):  # noqa: N818 - named after what was met, as Django's errors of the database
    """Raised in a transaction that met the result of another one: it is rolled back, and is to be run again."""


def run_in_transaction(write: Callable[[], Result], *, keep: bool = True) -> Result:
    """Runs `write` in a transaction of its own, up to three times when it met another one (`must_run_again`).

    Nothing of a failed attempt is left, so that `write` may be run again as long as it touches the database alone. Only
    where the database says so: a connection that is lost at COMMIT leaves it open whether there was an effect.

    Args:
        write: what is done.
        keep: False rolls it back in the end, once PostgreSQL has checked what it otherwise checks at the COMMIT.

    Raises:
        OperationalError: the database is unavailable, or the attempts are used up.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with transaction.atomic(durable=True):
                result = write()
                if not keep:
                    connection.check_constraints()
                    transaction.set_rollback(True)
                return result
        except Error as error:
            if not must_run_again(error) or attempt == _ATTEMPTS:
                raise
            if isinstance(error.__cause__, ReadOnlySqlTransaction):
                # This server is no longer the primary; a new connection may lead to it.
                connection.close()
    raise AssertionError("unreachable")


def run_briefly(write: Callable[[Any], Result]) -> Result:
    """Runs what others may wait for, in a transaction of its own: it waits but a moment for a lock, and tries again.

    Args:
        write: is given a cursor.
    """
    while True:
        try:
            with transaction.atomic(durable=True), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = 100")
                return write(cursor)
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected | LockNotAvailable):
                raise
            time.sleep(_SECONDS_BEFORE_ANOTHER_TRY)


def run_alone(sql: str, values: Sequence[object], *, is_durable: bool = False) -> None:
    """Runs a statement as a transaction of its own. The accelerator sends it beside those of other requests.

    Args:
        sql: it has no result.
        values: of it.
        is_durable: whether its COMMIT waits for the disk: then none that only reads waits with it.

    Raises:
        django.db.Error: nobody knows whether it was done.
    """
    default: Any = connections[DEFAULT_DB_ALIAS]
    if run := getattr(default, "run", None):
        run(sql, values, is_durable=is_durable)
        return
    with default.cursor() as cursor:
        cursor.execute(sql, values)


def must_run_again(error: Error) -> bool:
    """Whether a transaction was rolled back, and it is right to run it again: it met another one, or a standby."""
    return isinstance(error, ConcurrentWrite) or isinstance(error.__cause__, _RUN_AGAIN)


def is_refused_by_standby(error: BaseException | None) -> bool:
    """Whether a server did nothing of a statement since it is a standby: it has neither writes nor UNLOGGED tables."""
    return isinstance(error, ReadOnlySqlTransaction) or (
        isinstance(error, FeatureNotSupported) and "recovery" in str(error)
    )


def is_unavailable(exception: BaseException | None) -> bool:
    """Whether an exception says that the database is unavailable or busy, so that the client should retry.

    It calls two of its states faults of its own: a standby that has not taken over yet, and a transaction that it ended
    because the process slept in it. And where a connection is lost between two results, libpq tells it by an error of
    no class, and psycopg by an InternalError: a pooler passes on the result of a COMMIT, and then the loss of its
    server. Only PostgreSQL gives a code to each of its errors.
    """
    # Django leaves psycopg's own errors as they are where a server-side cursor is read.
    if isinstance(exception, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        return True
    cause = exception.__cause__ if isinstance(exception, Error) else None
    if type(exception) in {DatabaseError, InternalError} and isinstance(cause, psycopg.Error) and not cause.sqlstate:
        return True
    return isinstance(cause, IdleInTransactionSessionTimeout) or is_refused_by_standby(cause)


def get_lock_number(name: str) -> int:
    """The number of an advisory lock by name. Two names with the same number would at worst wait for each other."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def advisory_lock(number: int) -> None:
    """Waits for an advisory lock.

    Args:
        number: a 64-bit integer that identifies one thing in the whole service.
    """
    fetch_rows("SELECT pg_advisory_xact_lock(%s)", [number])


def try_advisory_lock(number: int, alias: str = DEFAULT_DB_ALIAS) -> bool:
    """Takes an advisory lock, and never waits for it. False when another transaction has it."""
    return bool(fetch_rows("SELECT pg_try_advisory_xact_lock(%s)", [number], alias)[0][0])


def lock_key_share(rows: QuerySet[Model]) -> frozenset[int]:
    """Locks rows FOR KEY SHARE. Returns the ids of those that exist.

    A foreign key takes the same lock: it delays the deletion of a row and FOR UPDATE, and no other write.
    """
    sql, params = rows.values("pk").query.sql_with_params()
    found = fetch_rows(f"{sql} FOR KEY SHARE", params, router.db_for_write(rows.model))
    return frozenset(pk for (pk,) in found)
