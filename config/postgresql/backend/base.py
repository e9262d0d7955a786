"""Django's PostgreSQL backend, except that no request asks a living connection whether it lives."""

import select
from typing import Any

from django.db.backends.postgresql import base, features


class DatabaseFeatures(features.DatabaseFeatures):
    # The first with the collation `pg_c_utf8`.
    minimum_database_version = (17,)


def has_news(connection: Any) -> bool:
    """Whether something can be read on a connection of psycopg: where nobody uses it, that its server has closed it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class DatabaseWrapper(base.DatabaseWrapper):
    features_class = DatabaseFeatures

    def is_usable(self) -> bool:
        """Whether the connection lives; the server is asked only where the socket says that something happened.

        Django asks by a statement, which costs as much as a request's own. A server that ends or dies closes the
        socket, and until then there is nothing to read on a connection that nobody uses.
        """
        if self.connection is None or self.connection.closed:
            return False
        return not has_news(self.connection) or super().is_usable()
