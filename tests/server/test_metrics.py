"""What Prometheus reads."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.limits.quotas import is_counted
from tests.api.wire import error_of, send

TOKEN = "the-token-of-prometheus"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def token(settings):
    settings.METRICS_TOKEN = TOKEN


def samples():
    response = send("GET", "/metrics", headers=BEARER)
    assert response.status_code == 200
    families = text_string_to_metric_families(response.content.decode())
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for f in families for sample in f.samples}


def requests(method, route, status):
    labels = {"method": method, "route": route, "status": str(status)}
    return samples().get(("http_requests_total", tuple(sorted(labels.items()))), 0)


def test_nothing_is_there_without_the_setting(settings):
    settings.METRICS_TOKEN = ""
    for headers in ({}, BEARER, {"Authorization": "Bearer "}):
        for method in ("GET", "POST", "OPTIONS"):
            error_of(send(method, "/metrics", headers=headers), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "UNAUTHENTICATED"),
        ({"Authorization": "Bearer"}, "INVALID_TOKEN"),
        ({"Authorization": "Bearer wrong"}, "INVALID_TOKEN"),
        ({"Authorization": f"Basic {TOKEN}"}, "INVALID_TOKEN"),
        ({"Authorization": "Bearer \u00fc"}, "INVALID_TOKEN"),
        ({"X-API-Key": TOKEN}, "UNAUTHENTICATED"),
    ],
)
def test_only_the_bearer_of_the_token_is_answered(headers, code):
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


@pytest.mark.parametrize(
    ("method", "path", "route", "status", "shown"),
    [
        ("GET", "/api/v1/users/{id}", "/api/v<version>/users/<id>", 200, "GET"),
        ("GET", "/users/{id}/orders", "/users/<user_id>/orders", 200, "GET"),
        ("DELETE", "/orders/1", "/orders/<id>", 405, "DELETE"),
        ("BREW", "/users", "/users", 405, "OTHER"),
        ("GET", "/nowhere/{id}", "none", 404, "GET"),
        ("HEAD", "/static/accounts/page.css", "none", 200, "HEAD"),
        ("GET", "/health/live", "/health/live", 200, "GET"),
    ],
)
def test_request_is_counted_by_its_route_and_never_by_its_address(user, *, method, path, route, status, shown):
    before = requests(shown, route, status)
    assert send(method, path.format(id=user.user.pk), headers=user.headers).status_code == status
    assert requests(shown, route, status) == before + 1


def test_time_of_requests_falls_into_few_buckets(user):
    user.get("/users")
    labels = (("method", "GET"), ("route", "/users"))
    buckets = [
        value for (name, found), value in samples().items() if name.endswith("_bucket") and set(labels) < set(found)
    ]
    assert 1 <= samples()[("http_request_duration_seconds_count", labels)] == max(buckets)
    assert len(buckets) < 10


def test_no_label_names_who_asks(user):
    user.get(f"/users/{user.user.pk}?email={user.user.email}")
    names = {name for _, labels in samples() for name, _ in labels}
    text = send("GET", "/metrics", headers=BEARER).content.decode()
    assert names <= {
        "route",
        "method",
        "status",
        "kind",
        "le",
        "generation",
        "implementation",
        "major",
        "minor",
        "patchlevel",
        "version",
    }
    assert user.user.email not in text
    assert TOKEN not in text
