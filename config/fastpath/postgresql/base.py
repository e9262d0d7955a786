"""Django's PostgreSQL backend with prepared statements, and without what it does at every request.

Replaces: `django.db.backends.postgresql`. Buys: a statement costs a quarter of what a cursor takes; a living connection
is not asked whether it lives; an idle connection is told neither of autocommit nor of commits that end nothing.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from time import perf_counter
from typing import Any, cast

from django.conf import settings
from django.db import connections
from django.db.backends.postgresql import base
from psycopg import Error
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int2, Int2Dumper, Int4, Int4Dumper, Int8, Int8Dumper, IntDumper

from config.fastpath import batching
from config.fastpath.loop_turns import LoopTurns
from config.fastpath.postgresql.batches import Batch, Rows, Statement
from config.fastpath.postgresql.given_rows import GivenRows
from config.fastpath.postgresql.loop_waits import LoopWaits
from config.fastpath.postgresql.prepared_statements import GivenRowsDumper, PreparedStatements
from config.http.request_state import Spent, present_state
from config.postgresql.statements import POOLED_WRAPPERS, WRAPPERS
from config.postgresql.transactions import is_refused_by_standby

# An integer that does not fit its column is refused as text. In binary, psycopg would cut it off to one that fits. One
# way for plain integers and for those that are marked as a column's: both are prepared under the same types.
_INTEGERS = {int: IntDumper, Int2: Int2Dumper, Int4: Int4Dumper, Int8: Int8Dumper}


# Those that need not see each statement: what they do is done here, too.
_OWN_WRAPPERS = (WRAPPERS, POOLED_WRAPPERS)

_connections = threading.local()


def get_connection(alias: str) -> DatabaseWrapper:
    """The connection of this thread to a database: Django's own look-up takes longer than sending a statement."""
    try:
        found: DatabaseWrapper = getattr(_connections, alias)
    except AttributeError:
        found = cast(DatabaseWrapper, connections[alias])
        setattr(_connections, alias, found)
    return found


class DatabaseWrapper(base.DatabaseWrapper):
    _statements: PreparedStatements
    _poll: select.poll
    _debugs: bool
    # Of the loop in whose thread it is used, once it is given them.
    turns: LoopTurns | None = None
    # When the present batch was sent, and how long it was waited for.
    _batch_began = _seconds_of_batch = 0.0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)
        for kind, as_text in _INTEGERS.items():
            made.adapters.register_dumper(kind, as_text)
        made.adapters.register_dumper(GivenRows, GivenRowsDumper)
        self._statements = PreparedStatements(made, self.settings_dict.get("SET_LOCAL", ""))
        self._poll = select.poll()
        self._poll.register(made.fileno(), select.POLLIN)
        self._debugs = settings.DEBUG
        if self.turns:
            LoopWaits(self.turns).attach(made)
        return made

    def close_if_unusable_or_obsolete(self) -> None:
        """Django's, but not for a request that is answered in the middle of a batch."""
        if not (self.turns and self.turns.is_on):
            super().close_if_unusable_or_obsolete()

    def _commit(self) -> None:
        """Django's, which prepares a line for its log of queries whether that is on or not."""
        if self.connection is None or self._debugs or self.force_debug_cursor:
            super()._commit()  # type: ignore[misc]  # the stubs leave it out
            return
        with self.wrap_database_errors:
            self.connection.commit()

    def is_usable(self) -> bool:
        """Whether the connection lives; the server is asked only where the socket says that something happened.

        Django asks by a statement at each request, which costs as much as the request's own. A server that ends or dies
        closes the socket, and until then there is nothing to read on a connection that nobody uses.
        """
        if self.connection is None or self.connection.closed:
            return False
        return not self._poll.poll(0) or super().is_usable()

    def get_autocommit(self) -> bool:
        """Django's, which makes sure of a connection even where there is one."""
        return self.autocommit if self.connection is not None else super().get_autocommit()

    def set_autocommit(self, autocommit: bool, *args: Any, **options: Any) -> None:
        """Django's and psycopg's, where there is nothing to roll back: the server is told of neither."""
        if self.in_atomic_block or not (self.health_check_done and self._is_plainly_idle()):  # type: ignore[attr-defined]  # the stubs leave it out
            super().set_autocommit(autocommit, *args, **options)
            return
        self.autocommit = self.connection._autocommit = autocommit
        if autocommit and self.run_commit_hooks_on_set_autocommit_on:
            self.run_and_clear_commit_hooks()
            self.run_commit_hooks_on_set_autocommit_on = False

    def commit(self) -> None:
        """Django's; psycopg is not called where no transaction began, or its last statement ended it."""
        if self.in_atomic_block or not self._is_plainly_idle():
            super().commit()
        else:
            self.errors_occurred, self.run_commit_hooks_on_set_autocommit_on = False, True

    def _is_plainly_idle(self) -> bool:
        """Whether there is no transaction, and no log that wants to know when one begins and ends."""
        if self.connection is None or self._debugs or self.force_debug_cursor:
            return False
        return self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    def run(  # noqa: C901 - the errors of a statement are told apart in one place
        self,
        *statements: Statement,
        shared_transaction: bool = False,
        is_logged: bool = False,
        is_second_try: bool = False,
    ) -> list[Rows]:
        """The rows of prepared statements, which are sent at once and waited for once.

        Outside of a transaction they are sent together with those that other tasks submit (config.fastpath.batching).

        Args:
            statements: the SQL, with `%s` for each value, and the values, which are bound by the server.
            shared_transaction: whether, outside of a transaction, they may run in one with those of other tasks. They
                read, or add rows that no other transaction adds.
            is_logged: whether their COMMIT waits for the WAL: for a disk, or a standby. Other tasks do not wait for it.
            is_second_try: whether the server they were sent to first was a standby, which has done nothing.
        """
        if not self.health_check_done:  # type: ignore[attr-defined]  # the stubs leave it out
            self.close_if_health_check_failed()
        if self.connection is None:
            self.ensure_connection()
        if self._debugs or self.force_debug_cursor or self.execute_wrappers not in _OWN_WRAPPERS:
            return [self._run_by_cursor(*statement) for statement in statements]
        if self.needs_rollback:
            self.validate_no_broken_transaction()
        is_batched = self.autocommit and batching.may_submit()
        state = present_state.get()
        spent = state.spent if state else Spent()
        began = perf_counter()
        try:
            if is_batched:
                rows: list[Rows] = batching.submit(
                    self.run_batches, Batch(statements, shared_transaction), comes_last=is_logged
                )
                return rows
            return self._statements.run(*statements)
        except Error as error:
            spent.fail(error)
            if self._has_left_standby(error) and not is_second_try:
                return self.run(
                    *statements, shared_transaction=shared_transaction, is_logged=is_logged, is_second_try=True
                )
            if self.in_atomic_block:
                # As Django does where it writes: who catches the error shall not take the transaction for a good one.
                self.needs_rollback, self.rollback_exc = True, error
            elif self.connection is not None and self.connection.closed:
                # Other tasks begin with a new connection, and need not lose their queries, too.
                self.close()
            with self.wrap_database_errors:
                raise
        finally:
            # Other tasks run before a batch is sent, and between its end and this one's turn.
            if is_batched:
                spent.add(statements, self._batch_began, self._seconds_of_batch)
            else:
                spent.add(statements, began, perf_counter() - began)

    def _has_left_standby(self, error: Error) -> bool:
        """Whether a server that takes no writes did nothing of the statements; then the connection to it is closed."""
        if not (is_refused_by_standby(error) and self.autocommit):
            return False
        self.close()
        return True

    def run_batches(self, batches: Sequence[Batch]) -> Sequence[list[Rows] | Exception]:
        """What several tasks submit: the rows of each batch of statements, or the error it met.

        Raises:
            django.db.Error, psycopg.Error: no batch was run, or nobody knows whether it was.
        """
        if self.connection is None:
            self.ensure_connection()
        self._batch_began = perf_counter()
        try:
            if self.turns:
                return self._statements.run_batches(batches, self.turns.give_way)
            return self._statements.run_batches(batches)
        finally:
            self._seconds_of_batch = perf_counter() - self._batch_began

    def _run_by_cursor(self, sql: str, values: Sequence[object]) -> Rows:
        """Runs a statement where execute wrappers or a log look at each one."""
        with self.wrap_database_errors:
            cursor = self._prepare_cursor(base.ServerBindingCursor(self.connection))  # type: ignore[attr-defined, call-arg]  # the stubs leave it out
        with cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
