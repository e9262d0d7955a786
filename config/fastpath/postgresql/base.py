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

from config.fastpath.greenlets import RequestGreenlet, get_request_greenlet
from config.fastpath.postgresql.batches import Rows, Statement
from config.fastpath.postgresql.given_rows import GivenRows
from config.fastpath.postgresql.prepared_statements import GivenRowsDumper, PreparedStatements
from config.http.request_state import get_spent
from config.postgresql.parameters import with_parameters
from config.postgresql.statements import POOLED_WRAPPERS, WRAPPERS
from config.postgresql.transactions import is_refused_by_standby

# An integer that does not fit its column is refused as text. In binary, psycopg would cut it off to one that fits. One
# way for plain integers and for those that are marked as a column's: both are prepared under the same types.
_INTEGERS = {int: IntDumper, Int2: Int2Dumper, Int4: Int4Dumper, Int8: Int8Dumper}
# Those that need not see each statement: what they do is done here, too.
_OWN_WRAPPERS = (WRAPPERS, POOLED_WRAPPERS)


class _Connections:
    """Takes the place of asgiref's Local in `django.db.connections`: a request in a greenlet has its own ones."""

    def __init__(self) -> None:
        self.__dict__["_threads"] = threading.local()

    def _get_holder(self) -> Any:
        runner = get_request_greenlet()
        return self._threads if runner is None else runner.connections

    def __getattr__(self, alias: str) -> Any:
        return getattr(self._get_holder(), alias)

    def __setattr__(self, alias: str, connection: Any) -> None:
        setattr(self._get_holder(), alias, connection)

    def __delattr__(self, alias: str) -> None:
        delattr(self._get_holder(), alias)


def get_connection(alias: str) -> DatabaseWrapper:
    """The connection of the caller to a database: of a request outside of a transaction, the one that all share."""
    runner = get_request_greenlet()
    if runner is None:
        return cast(DatabaseWrapper, connections[alias])
    own: DatabaseWrapper | None = getattr(runner.connections, alias, None)
    return own if own is not None and own.in_atomic_block else runner.scheduler.engine.get_shared(alias)


def release_connections(runner: RequestGreenlet) -> None:
    """Gives back what a request has borrowed, unless it is in a transaction."""
    for connection in vars(runner.connections).values():
        if connection.connection is not None and not connection.in_atomic_block:
            if connection.close_at is not None:
                # Its server takes no writes any more (config.postgresql.statements).
                connection.connection.close()
            runner.scheduler.engine.get_pool(connection.alias).give_back(connection.statements)
            connection.connection = None


def open_connection(alias: str, **parameters: str) -> PreparedStatements:
    """Opens a connection that belongs to no thread.

    Args:
        alias: of the database.
        parameters: of PostgreSQL, beside those of the settings.

    Raises:
        django.db.Error: the database is away, or refuses.
    """
    wrapper: Any = connections.create_connection(alias)
    wrapper.settings_dict = with_parameters(wrapper.settings_dict, **parameters)
    wrapper.connect()
    statements: PreparedStatements = wrapper.statements
    wrapper.connection = None
    return statements


class DatabaseWrapper(base.DatabaseWrapper):
    statements: PreparedStatements
    _poll: select.poll
    _debugs: bool

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        runner = get_request_greenlet()
        if runner is not None:
            self.statements = runner.scheduler.engine.get_pool(self.alias).borrow()
        else:
            made = super().get_new_connection(conn_params)
            for kind, as_text in _INTEGERS.items():
                made.adapters.register_dumper(kind, as_text)
            made.adapters.register_dumper(GivenRows, GivenRowsDumper)
            self.statements = PreparedStatements(made, self.settings_dict.get("SET_LOCAL", ""))
        self._poll = select.poll()
        self._poll.register(self.statements.connection.fileno(), select.POLLIN)
        self._debugs = settings.DEBUG
        return self.statements.connection

    def _close(self) -> None:
        """Django's; what was borrowed is given back. Whoever closes a connection wants another one."""
        runner = get_request_greenlet()
        if runner is None or self.connection is None:
            super()._close()  # type: ignore[misc]  # the stubs leave it out
            return
        self.connection.close()
        runner.scheduler.engine.get_pool(self.alias).give_back(self.statements)

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

    def run(self, *statements: Statement, shared_transaction: bool = False, is_durable: bool = False) -> list[Rows]:
        """The rows of each of some statements that are sent together, and take effect together or not at all.

        Args:
            statements: the SQL, with `%s` for each value, and the values.
            shared_transaction: whether those of others may be in the same transaction: nothing is locked.
            is_durable: whether the COMMIT waits for the disk.

        Raises:
            django.db.Error: as a cursor raises it.
        """
        runner = get_request_greenlet()
        if runner is not None and not self.in_atomic_block:
            shared: DatabaseWrapper = runner.scheduler.engine.get_shared(self.alias)
            return shared.run(*statements, shared_transaction=shared_transaction, is_durable=is_durable)
        with self.wrap_database_errors:
            try:
                return self._run_once(statements)
            except Error as error:
                if not (self.autocommit and is_refused_by_standby(error)):
                    raise
                # It has done nothing of them. Another server may be the primary now.
                self.close()
                return self._run_once(statements)

    def _run_once(self, statements: Sequence[Statement]) -> list[Rows]:
        if not self.health_check_done:  # type: ignore[attr-defined]  # the stubs leave it out
            self.close_if_health_check_failed()
        if self.connection is None:
            self.ensure_connection()
        if self._debugs or self.force_debug_cursor or self.execute_wrappers not in _OWN_WRAPPERS:
            return [self._run_by_cursor(*statement) for statement in statements]
        if self.needs_rollback:
            self.validate_no_broken_transaction()
        spent = get_spent()
        began = perf_counter()
        try:
            return self.statements.run(*statements)
        except Error as error:
            spent.fail(error)
            if self.in_atomic_block:
                # As Django does where it writes: who catches the error shall not take the transaction for a good one.
                self.needs_rollback, self.rollback_exc = True, error
            elif self.connection is not None and self.connection.closed:
                self.close()
            raise
        finally:
            spent.add(statements, began, perf_counter() - began)

    def _run_by_cursor(self, sql: str, values: Sequence[object]) -> Rows:
        """Runs a statement where execute wrappers or a log look at each one."""
        with self.wrap_database_errors:
            cursor = self._prepare_cursor(base.ServerBindingCursor(self.connection))  # type: ignore[attr-defined, call-arg]  # the stubs leave it out
        with cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


# Django imports this module to make its first connection.
connections._connections = _Connections()  # type: ignore[attr-defined]  # the stubs leave it out
