"""A host that is silent is waited for once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from config.postgresql.database_url import SECONDS_TO_CONNECT_TO_EACH


@pytest.fixture
def silent(transactional_db: None) -> Iterator[int]:
    """The port of a host that accepts connections, says nothing, and stands before the host of the database."""
    connection.ensure_connection()
    settings = connection.settings_dict
    before = dict(settings)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings |= {
            "HOST": f"127.0.0.1,{before['HOST']}",
            "PORT": f"{port},{before['PORT']}",
            "OPTIONS": before["OPTIONS"] | {"connect_timeout": SECONDS_TO_CONNECT_TO_EACH},
        }
        connection.close()
        yield port
        connection.close()
        settings |= before


def test_host_that_is_silent_is_waited_for_once(silent: int) -> None:
    began = time.monotonic()
    connection.ensure_connection()
    opened = time.monotonic()
    assert opened - began >= SECONDS_TO_CONNECT_TO_EACH - 0.1
    assert connection.settings_dict["HOST"].endswith(",127.0.0.1")
    assert connection.settings_dict["PORT"].endswith(f",{silent}")

    connection.close()
    connection.ensure_connection()
    assert time.monotonic() - opened < 1
