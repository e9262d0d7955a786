"""What is counted for Prometheus."""

import platform
import re

import django
import pytest
from prometheus_client.parser import text_string_to_metric_families

from config import COMMIT, VERSION
from orders.models import Order
from tests.accounts.conftest import log_in
from tests.api.test_failures import database_away
from tests.api.wire import send
from tests.conftest import PASSWORD
from tests.service import CHECKOUT
from tests.site.test_metrics import BEARER, TOKEN

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def token(settings):
    settings.METRICS_TOKEN = TOKEN


def samples(name=""):
    """The samples whose names begin so: to parse all of them takes long."""
    response = send("GET", "/metrics", headers=BEARER)
    assert response.status_code == 200
    lines = [line for line in response.content.decode().splitlines(keepends=True) if line.startswith(name)]
    families = text_string_to_metric_families("".join(lines))
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for f in families for sample in f.samples}


def counted(name, **labels):
    return samples(name).get((name, tuple(sorted(labels.items()))), 0)


def requests(method, route, status):
    return counted("http_requests_total", method=method, route=route, status=str(status))


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


def test_machine_is_scraped_by_its_address(db):
    assert send("GET", "/metrics", headers=BEARER | {"Host": "203.0.113.10:443"}).status_code == 200


def test_no_label_names_who_asks(user):
    user.get(f"/users/{user.user.pk}?email={user.user.email}")
    names = {name for _, labels in samples() for name, _ in labels}
    text = send("GET", "/metrics", headers=BEARER).content.decode()
    allowed = "route method status kind le table event outcome policy lane"
    allowed += " generation implementation major minor patchlevel version commit python django"
    assert names <= {*allowed.split()}
    assert user.user.email not in text
    assert TOKEN not in text


def test_build_is_that_of_the_project():
    versions = {
        "version": VERSION,
        "commit": COMMIT,
        "python": platform.python_version(),
        "django": django.get_version(),
    }
    assert counted("build_info", **versions) == 1


def test_rows_are_counted_by_table(user):
    before, events = counted("table_rows", table="orders_order"), counted("events_total")
    Order.objects.bulk_create(Order(user=user.user, item="T", qty=1) for _ in range(3))
    assert counted("table_rows", table="orders_order") == before + 3
    assert counted("events_total") == events + 3
    assert counted("events_horizon_seconds") >= 0
    assert counted("table_rows", table="payments_payment") == 0
    assert counted("database_up") == 1


@pytest.mark.django_db(transaction=True)
def test_database_that_is_away_is_told_and_hides_nothing_else():
    with database_away():
        found = samples()
    assert found["database_up", ()] == 0
    assert not any(name == "table_rows" for name, _ in found)
    assert any(name == "build_info" for name, _ in found)
    assert counted("database_up") == 1


@pytest.mark.django_db(transaction=True)
def test_logins_are_counted_by_outcome(make_user, settings):
    user = make_user(password=PASSWORD)
    settings.RATE_LIMIT_LOGIN_ACCOUNT = 1
    names = ("login", "login.failed", "login.refused")
    before = {name: counted("audit_events_total", event=name) for name in names}
    assert log_in(user.email).status == 200
    for status in (401, 429):
        assert log_in(user.email, password="another password").status == status
    more = {name: counted("audit_events_total", event=name) - before[name] for name in names}
    assert more == {"login": 1, "login.failed": 1, "login.refused": 1}


@pytest.mark.parametrize("caller", ["principal", "anonymous"])
def test_requests_over_a_quota_are_counted(user, settings, caller, one_minute):
    settings.RATE_LIMIT_PRINCIPAL = settings.RATE_LIMIT_ANONYMOUS = 1
    before = counted("quota_refusals_total", policy=caller)
    headers = user.headers if caller == "principal" else {"X-Forwarded-For": "192.0.2.1"}
    answers = [send("GET", "/versions", headers=headers).status_code for _ in range(3)]
    assert answers.count(429) == counted("quota_refusals_total", policy=caller) - before > 0


@pytest.mark.django_db(transaction=True)
def test_keys_that_are_sent_again_are_counted_by_outcome(user):
    before = {name: counted("idempotency_keys_repeated_total", outcome=name) for name in ("replayed", "reused")}
    answers = [user.post("/payments", {"amount": amount}, idempotency_key="k").status for amount in (1, 1, 1, 2)]
    assert answers == [201, 201, 201, 422]
    more = {name: counted("idempotency_keys_repeated_total", outcome=name) - before[name] for name in before}
    assert more == {"replayed": 2, "reused": 1}


def test_documents_name_every_metric():
    """Those of the libraries, about the process, are not of the service."""
    names = re.findall(r"^# TYPE (\S+)", send("GET", "/metrics", headers=BEARER).content.decode(), re.MULTILINE)
    own = {name for name in names if not re.match(r"python_|process_|.*_created$", name)}
    section = (CHECKOUT / "docs/operate.md").read_text().split("## Metrics")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)} == own
