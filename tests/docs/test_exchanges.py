"""What the documentation shows is what the service answers."""

from pathlib import Path
from typing import Any

import pytest

from accounts.services import create_api_key
from config.management import demo
from tests.accounts.oauth.actors import register
from tests.conftest import PASSWORD, Caller
from tests.docs.exchanges import exchanges, matches
from users import services

ROOT = Path(__file__).resolve().parent.parent.parent
ORIGIN = "http://127.0.0.1:8000"


def tokens_of(body: Any) -> dict[str, str]:
    """The tokens that an answer gives, under the names by which the next commands call them."""
    data = body.get("data") if isinstance(body, dict) else None
    tokens = ("access_token", "refresh_token")
    return {name.upper(): data[name] for name in tokens if isinstance(data, dict) and name in data}


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_every_exchange_of_the_page_happens_as_shown(page, settings):
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 600, 60
    demo.load()
    administrator = services.create(name="Administrator", email="admin@example.com", role="admin", password=PASSWORD)
    key = create_api_key(administrator, name="First key")[1]
    robot = register(administrator, grant="client-credentials", redirect_uris="")
    variables = {"KEY": key, "PASSWORD": PASSWORD, "CLIENT": robot.client_id, "SECRET": robot.secret}
    variables |= {"ORIGIN": ORIGIN, "API": f"{ORIGIN}/api/v1"}
    shown = 0
    for exchange in exchanges(ROOT / page, variables):
        shown += 1
        path = exchange.url.removeprefix(ORIGIN)
        answer = Caller(headers=exchange.headers)(exchange.method, path, raw=exchange.body)
        assert matches(exchange.expected_body, answer.body), (exchange.command, answer)
        variables |= tokens_of(answer.body)
        if exchange.method == "GET" and "ETag" in answer.headers:
            variables["ETAG"] = answer.headers["ETag"]
        if exchange.expected_status is None:
            continue
        assert answer.status == exchange.expected_status, (exchange.command, answer)
        for name, value in exchange.expected_headers.items():
            assert matches(value, answer.headers.get(name)), (exchange.command, name, answer.headers)
    assert shown
