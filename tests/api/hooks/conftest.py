"""DRF's hooks do in a viewset of the service what they do in DRF."""

import json

import pytest

from accounts import logins
from orders.models import Order
from tests.api.hooks import probes
from tests.conftest import new_client
from tests.server.environ import build_environ


@pytest.fixture
def probed(settings):
    probes.show()
    # Sends the signal at which the handler forgets where addresses lead.
    settings.ROOT_URLCONF = probes.__name__


@pytest.fixture
def token(admin):
    return logins.log_in(admin.user).access


@pytest.fixture
def call(probed, token):
    """Sends a request. Returns the response, with `data` where there is any."""

    def send(path, body=None, method=None, version=1, **headers):
        environ = build_environ(path, token, body)
        environ["PATH_INFO"] = environ["PATH_INFO"].replace("/v1/", f"/v{version}/")
        environ |= {f"HTTP_{name}": value for name, value in headers.items()}
        environ["REQUEST_METHOD"] = method or environ["REQUEST_METHOD"]
        response = new_client().handler(environ)
        is_json = response.content and response["Content-Type"].endswith("json")
        response.json = json.loads(response.content) if is_json else {}
        response.data = response.json.get("data")
        return response

    return send


@pytest.fixture
def orders(admin):
    return [Order.objects.create(user=admin.user, item=item, qty=qty) for item, qty in [("a", 1), ("b", 2), ("c", 3)]]


@pytest.fixture(autouse=True)
def once_more(call, orders):
    """What is made at the first requests for an action must not be right by chance: each test runs warm."""
    for _ in range(2):
        assert call("/orders").status_code == 200
