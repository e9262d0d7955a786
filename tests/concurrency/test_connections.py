"""A connection that the server ended is noticed before a request uses it, at no cost to the other requests."""

import psycopg
from django.db import connection

from tests.conftest import own_session


def begin_request() -> None:
    """What Django does with its connections when a request starts; its test client leaves it out."""
    connection.close_if_unusable_or_obsolete()


@own_session
def test_connection_that_was_ended_while_idle_is_replaced(transactional_db, user):
    assert user.get("/users").status == 200
    ended = connection.connection.info.backend_pid
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    begin_request()
    assert user.get("/users").status == 200
    assert connection.connection.info.backend_pid != ended
