"""Django's PostgreSQL backend, but for what it does at every request."""

import select
from typing import Any

from django.db.backends.postgresql import base, operations


class DatabaseOperations(operations.DatabaseOperations):
    compiler_module = "config.postgresql.compiler"


class PreparedCursor(base.ServerBindingCursor):
    def _send_query_prepared(self, name: bytes, pgq: Any, **options: Any) -> None:
        # Where Django's log of statements looks for the text.
        self._query = pgq
        super()._send_query_prepared(name, pgq, **options)  # type: ignore[misc]  # the stubs leave it out


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations

    def is_usable(self) -> bool:
        """Whether the connection lives, asked of the server only where the socket says that something happened.

        Django asks by a statement at each request, which costs as much as the request's own. A server that ends or dies
        closes the socket, and until then there is nothing to read on a connection that nobody uses.
        """
        if self.connection is None or self.connection.closed:
            return False
        return not _has_news(self.connection.fileno()) or super().is_usable()

    def prepared_cursor(self) -> Any:
        """A cursor whose statements the server parses once for the connection, and gets with their values apart.

        Not for all of the ORM, whose statements are not all fit for that.
        """
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            return self._prepare_cursor(PreparedCursor(self.connection))  # type: ignore[attr-defined, call-arg]  # so do they


def _has_news(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
