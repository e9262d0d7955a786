"""Writing in one transaction, again where PostgreSQL asks for it; and what says that PostgreSQL is to be waited for."""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, transaction
from psycopg.errors import (
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    ReadOnlySqlTransaction,
    SerializationFailure,
)

Result = TypeVar("Result")

_ATTEMPTS = 3


def run_in_transaction(write: Callable[[], Result]) -> Result:
    """Runs `write` in a transaction of its own, up to three times when it fell victim to a deadlock.

    Nothing of a failed attempt is left, so that `write` may be run again as long as it touches the database alone. Only
    where the database says so: a connection that is lost at COMMIT leaves it open whether there was an effect.

    Raises:
        OperationalError: the database is away, or the attempts are used up.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with transaction.atomic(durable=True):
                return write()
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected | SerializationFailure) or attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def is_unavailable(exception: BaseException | None) -> bool:
    """Whether an exception says that the database is unavailable or busy, so that the client shall try again.

    It calls two of its states faults of its own: a standby that has not taken over yet, and a transaction that it ended
    because the process slept in it.
    """
    brief = ReadOnlySqlTransaction | IdleInTransactionSessionTimeout
    return isinstance(exception, OperationalError | InterfaceError) or (
        isinstance(exception, InternalError) and isinstance(exception.__cause__, brief)
    )
