"""A service with the demo data."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from accounts.services import create_api_key
from config.events.representation import Place, seal_place
from config.management.demo.load import load_demo_data
from tests.accounts.oauth.actors import register
from tests.conftest import PASSWORD, wait_for_events
from users import services


@pytest.fixture
def variables(
    transactional_db: None, live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The demo data behind a server, and what the examples call by name."""
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 600, 60
    settings.PUBLIC_URL = live_server.url
    # An open connection of the server's threads would prevent dropping the database.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    load_demo_data()
    administrator = services.create(name="Administrator", email="admin@example.com", role="admin", password=PASSWORD)
    key = create_api_key(administrator, name="First key")[1]
    robot = register(administrator, grant="client-credentials", redirect_uris="")
    wait_for_events()
    return {
        "KEY": key,
        "PASSWORD": PASSWORD,
        "CLIENT": robot.client_id,
        "SECRET": robot.secret,
        "ORIGIN": live_server.url,
        "API": f"{live_server.url}/api/v2",
        "LONG": "x" * 100 * 1024,
        "EXPIRED_CURSOR": seal_place(Place(uuid4(), 1, 1)),
    }
