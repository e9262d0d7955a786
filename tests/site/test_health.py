"""Liveness and readiness, as probes ask for them."""

import pytest

from tests.api.wire import send

pytestmark = pytest.mark.django_db


def test_health_answers_whatever_host_is_named():
    for path in ["/health/live", "/health/ready"]:
        for host in ["10.0.0.7:8000", "[2001:db8::7]:8000", "evil.example", "a b<>", "", None]:
            for accept in ["*/*", "text/html"]:
                request = {"HTTP_HOST": host, "SERVER_NAME": "10.0.0.7", "SERVER_PROTOCOL": "HTTP/1.0"}
                if host is None:
                    del request["HTTP_HOST"]
                for method, status in (("GET", 200), ("HEAD", 200), ("OPTIONS", 200), ("POST", 405)):
                    assert send(method, path, headers={"Accept": accept}, **request).status_code == status, method
