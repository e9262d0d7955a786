"""What the documentation shows is what the service answers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from django.db import connection
from django.test import override_settings

from accounts.services import create_api_key
from config.api.writing import idempotency
from config.events.representation import Place, seal_place
from config.management.demo.load import load_demo_data
from config.site import documentation
from tests.accounts.oauth.actors import register
from tests.api.test_failures import database_away
from tests.conftest import PASSWORD, Caller, wait_for_events
from tests.docs.exchanges import exchanges, matches
from users import services
from users.models import User

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGIN = "http://127.0.0.1:8000"
# What an answer gives, by the names by which the next commands call it.
GIVEN = {
    "access_token": "ACCESS_TOKEN",
    "refresh_token": "REFRESH_TOKEN",
    "key": "NEW_KEY",
    "nextCursor": "NEXT_CURSOR",
}


def given_by(body: Any) -> dict[str, str]:
    parts = [body.get("data"), body.get("meta")] if isinstance(body, dict) else []
    return {GIVEN[name]: part[name] for part in parts if isinstance(part, dict) for name in GIVEN.keys() & part.keys()}


@contextmanager
def running_payment() -> Iterator[None]:
    """Another request holds the key `running` of the administrator."""
    administrator = User.objects.get(email="admin@example.com")
    parameters = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    with psycopg.connect(**parameters) as other:
        key = idempotency.IdempotencyKey(administrator.pk, "POST /payments", "running", b"")
        other.execute("SELECT pg_advisory_xact_lock(%s)", [key.lock_number])
        yield


@contextmanager
def fault_of_ours() -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("config.api.viewsets.ResourceViewSet.respond_created", fail)
        yield


# Their functions are run in tests/docs/test_languages.py.
WITHOUT_EXCHANGES = {
    "docs/guide/walking-lists.md",
    "docs/guide/retries.md",
    "docs/guide/import-users.md",
    "docs/guide/polling.md",
}
# Errors that no request makes by itself: what has to be the case, by the heading under which they are shown.
SITUATIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "VERSION_RETIRED": lambda: time_machine.travel("2028-12-01T00:00:00Z"),
    "IDEMPOTENCY_IN_PROGRESS": running_payment,
    "RATE_LIMITED": lambda: override_settings(RATE_LIMIT_PRINCIPAL=1),
    "INTERNAL_ERROR": fault_of_ours,
    "SERVICE_UNAVAILABLE": database_away,
}


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", ["README.md", *(f"docs/guide/{name}.md" for name in documentation.PAGES)])
def test_every_exchange_of_the_page_happens_as_shown(page, settings, request):
    if page.endswith("errors.md"):
        # Which uses up a quota.
        request.getfixturevalue("one_minute")
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 600, 60
    settings.PUBLIC_URL = ORIGIN
    load_demo_data()
    administrator = services.create(name="Administrator", email="admin@example.com", role="admin", password=PASSWORD)
    key = create_api_key(administrator, name="First key")[1]
    robot = register(administrator, grant="client-credentials", redirect_uris="")
    wait_for_events()
    variables = {"KEY": key, "PASSWORD": PASSWORD, "CLIENT": robot.client_id, "SECRET": robot.secret}
    variables |= {"ORIGIN": ORIGIN, "API": f"{ORIGIN}/api/v2", "LONG": "x" * 100 * 1024}
    variables["EXPIRED_CURSOR"] = seal_place(Place(uuid4(), 1, 1))
    shown = 0
    for exchange in exchanges(ROOT / page, variables):
        shown += 1
        path = exchange.url.removeprefix(ORIGIN)
        with SITUATIONS.get(exchange.heading, nullcontext)():
            answer = Caller(headers=exchange.headers)(exchange.method, path, raw=exchange.body)
        assert matches(exchange.expected_body, answer.body), (exchange.command, answer)
        variables |= given_by(answer.body)
        if exchange.method == "GET" and "ETag" in answer.headers:
            variables["ETAG"] = answer.headers["ETag"]
        if exchange.expected_status is None:
            continue
        assert answer.status == exchange.expected_status, (exchange.command, answer)
        for name, value in exchange.expected_headers.items():
            assert matches(value, answer.headers.get(name)), (exchange.command, name, answer.headers)
    assert bool(shown) == (page not in WITHOUT_EXCHANGES)
