"""Django's PostgreSQL backend, but for what it does at every request."""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from typing import Any, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.postgresql import base
from psycopg import Error
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int2, Int2Dumper, Int4, Int4Dumper, Int8, Int8Dumper, IntDumper

from config.fastpath import batching
from config.fastpath.postgresql.prepared_statements import Group, PreparedStatements, Rows, Statement

# An integer that does not fit its column is refused as text. In binary, psycopg would cut it off to one that fits. It
# keeps one way for plain integers and for those that are marked as a column's, so that both need the same.
_INTEGERS = {int: IntDumper, Int2: Int2Dumper, Int4: Int4Dumper, Int8: Int8Dumper}


_kept = threading.local()


def database() -> DatabaseWrapper:
    """The connection of this thread, which Django's `connection` is a proxy of.

    The proxy takes longer to find it than it takes to send a statement.
    """
    try:
        found: DatabaseWrapper = _kept.wrapper
    except AttributeError:
        found = _kept.wrapper = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS])
    return found


class DatabaseWrapper(base.DatabaseWrapper):
    _statements: PreparedStatements
    _news: select.poll
    _debugs: bool

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)
        for kind, as_text in _INTEGERS.items():
            made.adapters.register_dumper(kind, as_text)
        self._statements = PreparedStatements(made)
        self._news = select.poll()
        self._news.register(made.fileno(), select.POLLIN)
        self._debugs = settings.DEBUG
        return made

    def _commit(self) -> None:
        """Django's, which prepares a line for its log of queries whether there is one or not."""
        if self.connection is None or self._debugs or self.force_debug_cursor:
            super()._commit()  # type: ignore[misc]  # the stubs leave it out
            return
        with self.wrap_database_errors:
            self.connection.commit()

    def is_usable(self) -> bool:
        """Whether the connection lives, asked of the server only where the socket says that something happened.

        Django asks by a statement at each request, which costs as much as the request's own. A server that ends or dies
        closes the socket, and until then there is nothing to read on a connection that nobody uses.
        """
        if self.connection is None or self.connection.closed:
            return False
        return not self._news.poll(0) or super().is_usable()

    def set_autocommit(self, autocommit: bool, *args: Any, **options: Any) -> None:
        """Django's and psycopg's, where there is nothing to be made good: the server is told of neither."""
        if self.in_atomic_block or not (self.health_check_done and self._is_plainly_idle()):  # type: ignore[attr-defined]  # the stubs leave it out
            super().set_autocommit(autocommit, *args, **options)
            return
        self.autocommit = self.connection._autocommit = autocommit
        if autocommit and self.run_commit_hooks_on_set_autocommit_on:
            self.run_and_clear_commit_hooks()
            self.run_commit_hooks_on_set_autocommit_on = False

    def commit(self) -> None:
        """Django's, of which psycopg hears nothing where no transaction began, or its last statement ended it."""
        if self.in_atomic_block or not self._is_plainly_idle():
            super().commit()
        else:
            self.errors_occurred, self.run_commit_hooks_on_set_autocommit_on = False, True

    def _is_plainly_idle(self) -> bool:
        """Whether there is no transaction, and nobody who reads when one begins and ends."""
        if self.connection is None or self._debugs or self.force_debug_cursor:
            return False
        return self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    def run(self, *statements: Statement, commit: bool = False, may_share: bool = False) -> list[Rows]:
        """The rows of statements that are run again and again: the server parses each once for the connection.

        They are waited for once; outside of a transaction, once with those of all jobs that are done together. Not for
        all of the ORM, whose statements are not all fit for that.

        Args:
            statements: the SQL, with `%s` for each value, and the values, which the server gets apart.
            commit: whether they are the last of the outermost transaction, which then is committed with them. What
                the caller does afterwards cannot be rolled back.
            may_share: whether, outside of a transaction, they may be done in one with those of other jobs. They read,
                or add rows that nobody else adds.
        """
        if not self.health_check_done:  # type: ignore[attr-defined]  # the stubs leave it out
            self.close_if_health_check_failed()
        if self.connection is None:
            self.ensure_connection()
        if self._debugs or self.force_debug_cursor or self.execute_wrappers:
            return [self._run_watched(*statement) for statement in statements]
        if self.needs_rollback:
            self.validate_no_broken_transaction()
        try:
            if self.autocommit and batching.may_ask():
                rows: list[Rows] = batching.ask(Group(statements, may_share))
                return rows
            return self._statements.run(*statements, commit=commit and len(self.atomic_blocks) == 1)
        except Error as error:
            if self.in_atomic_block:
                # As Django does where it writes: who catches the error shall not take the transaction for a good one.
                self.needs_rollback, self.rollback_exc = True, error
            elif self.connection is not None and self.connection.closed:
                # Other jobs begin with a new one, and need not lose what they ask, too.
                self.close()
            with self.wrap_database_errors:
                raise

    def run_each(self, groups: Sequence[Group]) -> Sequence[list[Rows] | Exception]:
        """What jobs ask that are done together: the rows of each group of statements, or the error it met.

        Raises:
            django.db.Error, psycopg.Error: nobody's were run, or nobody knows whether they were.
        """
        if self.connection is None:
            self.ensure_connection()
        return self._statements.run_each(groups)

    def _run_watched(self, sql: str, values: Sequence[Any]) -> Rows:
        """Runs a statement where others look at each one, as Django's cursors let them."""
        with self.wrap_database_errors:
            cursor = self._prepare_cursor(base.ServerBindingCursor(self.connection))  # type: ignore[attr-defined, call-arg]  # the stubs leave it out
        with cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
