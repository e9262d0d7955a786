"""What the documentation shows is what the service answers."""

from pathlib import Path

import pytest

from accounts.services import create_api_key
from config.management import demo
from tests.accounts.oauth.actors import register
from tests.conftest import Caller
from tests.docs.exchanges import exchanges, matches
from users import services

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGIN = "http://127.0.0.1:8000"


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_every_exchange_of_the_page_happens_as_shown(page):
    demo.load()
    administrator = services.create(name="Administrator", email="admin@example.com", role="admin", password=None)
    key = create_api_key(administrator, name="First key")[1]
    robot = register(administrator, grant="client-credentials", redirect_uris="")
    variables = {"KEY": key, "CLIENT": robot.client_id, "SECRET": robot.secret}
    shown = list(exchanges(ROOT / page, variables | {"ORIGIN": ORIGIN, "API": f"{ORIGIN}/api/v1"}))
    assert shown
    for exchange in shown:
        path = exchange.url.removeprefix(ORIGIN)
        answer = Caller(headers=exchange.headers)(exchange.method, path, raw=exchange.body)
        assert matches(exchange.expected_body, answer.body), (exchange.command, answer)
        if exchange.expected_status is None:
            continue
        assert answer.status == exchange.expected_status, (exchange.command, answer)
        for name, value in exchange.expected_headers.items():
            assert matches(value, answer.headers.get(name)), (exchange.command, name, answer.headers)
