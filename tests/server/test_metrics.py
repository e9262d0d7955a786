"""What is counted for Prometheus."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.wire import send

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
