"""The view of `/metrics`: who may read it, and in which form."""

import pytest

from tests.api.limits.quotas import is_counted
from tests.api.wire import error_of, send

TOKEN = "the-token-of-prometheus"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def token(settings):
    settings.METRICS_TOKEN = TOKEN


def test_nothing_is_there_without_the_setting(settings):
    settings.METRICS_TOKEN = ""
    for headers in ({}, BEARER, {"Authorization": "Bearer "}):
        for method in ("GET", "POST", "OPTIONS"):
            error_of(send(method, "/metrics", headers=headers), 404, "NOT_FOUND")


def test_only_the_bearer_of_the_token_is_answered():
    for headers, code in [
        ({}, "UNAUTHENTICATED"),
        ({"Authorization": "Bearer"}, "INVALID_TOKEN"),
        ({"Authorization": "Bearer wrong"}, "INVALID_TOKEN"),
        ({"Authorization": f"Basic {TOKEN}"}, "INVALID_TOKEN"),
        ({"Authorization": "Bearer \u00fc"}, "INVALID_TOKEN"),
        ({"X-API-Key": TOKEN}, "UNAUTHENTICATED"),
    ]:
        response = send("GET", "/metrics", headers=headers)
        error_of(response, 401, code)
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="metrics"'


def test_credential_of_a_user_is_none(admin):
    assert admin.get("/metrics").status == 401


def test_answer_is_prometheus_text_which_nobody_keeps_and_nothing_counts():
    response = send("GET", "/metrics", headers={**BEARER, "Accept": "application/openmetrics-text;q=0.9,*/*;q=0.1"})
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-store"
    assert not is_counted(response)
    head = send("HEAD", "/metrics", headers=BEARER)
    assert (head.status_code, head.content) == (200, b"")
    assert send("POST", "/metrics", headers=BEARER).status_code == 405
