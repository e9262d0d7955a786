"""The alerts of deploy/alerts.yml fire on what the service itself tells, once what they are for has happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import CHECKOUT, Copy, Service, ask, get_database_url, wait_for
from tests.system.deployment import frozen
from tests.system.proxies import find_program

TOKEN = "the-token-of-prometheus"
PASSWORD = "four plain words here"
# Minutes before, and after: the slowest alert looks back for hours, and waits for one.
BEFORE, AFTER = 20, 120
# As long as Prometheus waits by default.
SCRAPE_TIMEOUT = 10

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def watched(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    variables = {"METRICS_TOKEN": TOKEN, "RATE_LIMIT_PRINCIPAL": "100", "MAX_IN_FLIGHT": "0"}
    variables |= {"RATE_LIMIT_ANONYMOUS": "100000"}
    service = Service(checkout, **variables, RATE_LIMIT_LOGIN_ACCOUNT="0", RATE_LIMIT_LOGIN_ADDRESS="0")
    yield service
    service.stop()


@pytest.fixture(scope="module")
def key(watched: Service) -> str:
    made = watched.copy.manage("create_api_key", "admin@example.com").stdout.strip()
    # Each minute is like the one that is seen below: its series are there before.
    ask(watched, "/api/v2/posts/1", X_API_Key=made)
    return made


def scrape(service: Service) -> Samples:
    """What Prometheus has of the service: its metrics, and whether it answered."""
    try:
        scraped = ask(service, "/metrics", timeout=SCRAPE_TIMEOUT, Authorization=f"Bearer {TOKEN}", Host="203.0.113.10")
    except OSError:
        return {("up", ()): 0}
    assert scraped.status == 200
    families = text_string_to_metric_families(scraped.content.decode())
    return {("up", ()): 1} | {
        (one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples
    }


def log_in(service: Service, key: str, email: str) -> dict[str, str]:
    """The tokens of a new user."""
    credentials = {"email": email, "password": PASSWORD}
    assert ask(service, "/api/v2/users", "POST", credentials | {"name": "Name"}, X_API_Key=key).status == 201
    return dict(ask(service, "/api/login", "POST", credentials).json()["data"])


@contextmanager
def fault(service: Service, key: str) -> Iterator[None]:
    with psycopg.connect(get_database_url(service.copy), autocommit=True) as database:
        database.execute("ALTER TABLE orders_order RENAME COLUMN item TO thing")
        try:
            assert ask(service, "/api/v2/orders", X_API_Key=key).status == 500
        finally:
            database.execute("ALTER TABLE orders_order RENAME COLUMN thing TO item")
    yield


@contextmanager
def silent_database(service: Service, key: str) -> Iterator[None]:
    with frozen(Cluster(get_accessible_folder(service.copy.folder / ".data/postgresql"))):
        yield


@contextmanager
def dying_workers(service: Service, key: str) -> Iterator[None]:
    for _ in range(4):
        before = service.workers()
        os.kill(before[0], signal.SIGKILL)
        wait_for(lambda: len(service.workers()) == 2 and service.workers() != before)  # noqa: B023 - called at once
        wait_for(lambda: service.status() == 200)
    yield


@contextmanager
def guessed_passwords(service: Service, key: str) -> Iterator[None]:
    guess = {"email": "admin@example.com", "password": "a wrong password"}
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: ask(service, "/api/login", "POST", guess).status, range(70))) == {401}
    yield


@contextmanager
def reused_token(service: Service, key: str) -> Iterator[None]:
    first = log_in(service, key, "reused@example.com")
    body = {"refresh_token": first["refresh_token"]}
    second = ask(service, "/api/token/refresh", "POST", body).json()["data"]
    ask(service, "/api/protected", Authorization=f"Bearer {second['access_token']}")
    assert ask(service, "/api/token/refresh", "POST", body).status == 401
    yield


@contextmanager
def used_up_quota(service: Service, key: str) -> Iterator[None]:
    token = log_in(service, key, "quota@example.com")["access_token"]
    assert {ask(service, "/api/v2/users", Authorization=f"Bearer {token}").status for _ in range(250)} == {200, 429}
    yield


@contextmanager
def slow_statements(service: Service, key: str) -> Iterator[None]:
    with psycopg.connect(get_database_url(service.copy)) as database, ThreadPoolExecutor(20) as pool:
        database.execute("LOCK TABLE posts_post")
        asked = [pool.submit(ask, service, "/api/v2/posts/1", X_API_Key=key) for _ in range(20)]
        database.execute("SELECT pg_sleep(2)")
        database.rollback()
        assert {each.result().status for each in asked} <= {200, 404}
    yield


@contextmanager
def stopped_processes(service: Service, key: str) -> Iterator[None]:
    with paused(service, ""):
        yield


@contextmanager
def paused(service: Service, part: str) -> Iterator[None]:
    """The processes of the service, but those of the database, whose command has a part."""
    processes = [pid for pid, command in service.copy.processes().items() if f"manage.py {part}" in command]
    assert processes
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def waiting_logins(service: Service, key: str, number: int = 40) -> Iterator[None]:
    """Log-ins that are under way, and more that wait for them."""
    credentials = {"email": "admin@example.com", "password": "a wrong password"}
    with psycopg.connect(get_database_url(service.copy)) as database, ThreadPoolExecutor(number) as pool:
        database.execute("LOCK TABLE users_user")
        for _ in range(number):
            pool.submit(ask, service, "/api/login", "POST", credentials)
        database.execute("SELECT pg_sleep(3)")
        try:
            yield
        finally:
            database.rollback()


@contextmanager
def too_many_logins(service: Service, key: str) -> Iterator[None]:
    with waiting_logins(service, key, 300):
        pass
    yield


@contextmanager
def silent_database_for_quotas(service: Service, key: str) -> Iterator[None]:
    with silent_database(service, key):
        assert ask(service, "/api/v2/versions").status == 200
    wait_for(lambda: service.status() == 200)
    yield


@contextmanager
def mail_that_nobody_sends(service: Service, key: str) -> Iterator[None]:
    with paused(service, "deliver"):
        assert ask(service, "/api/password-resets", "POST", {"email": "admin@example.com"}).status == 202
        with psycopg.connect(get_database_url(service.copy)) as database:
            database.execute(
                "UPDATE config_outboxentry SET due_at = now() - interval '1 hour' WHERE status = 'pending'"
            )
        yield


@contextmanager
def webhook_that_nobody_sends_to(service: Service, key: str) -> Iterator[None]:
    with paused(service, "deliver"):
        body = {"url": "https://example.com/", "types": ["post.created"]}
        made = ask(service, "/api/v2/webhooks", "POST", body, X_API_Key=key)
        assert made.status == 201, made
        assert ask(service, f"{made.headers['Location']}/pings", "POST", {}, X_API_Key=key).status == 202
        with psycopg.connect(get_database_url(service.copy)) as database:
            database.execute("UPDATE config_webhookdelivery SET due_at = now() - interval '1 hour'")
        yield


CONDITIONS: dict[str, Callable[[Service, str], Any]] = {
    # First, while there is no series of 500 yet.
    "ServerErrors": fault,
    "ErrorBudgetBurnsFast": fault,
    "ErrorBudgetBurnsSlowly": fault,
    "ServiceAway": stopped_processes,
    "QueueAge": waiting_logins,
    "RequestsTurnedAway": too_many_logins,
    "QuotasNotCounted": silent_database_for_quotas,
    "OutboxOverdue": mail_that_nobody_sends,
    "WebhooksLate": webhook_that_nobody_sends_to,
    "DatabaseAway": silent_database,
    "WorkersRestart": dying_workers,
    "LoginFailures": guessed_passwords,
    "TokensReused": reused_token,
    "QuotasUsedUp": used_up_quota,
    "AnswersSlow": slow_statements,
}


# One failure, or one reuse, must suffice.
ONCE = {"ServerErrors", "TokensReused"}


def write_values(name: str, before: float | None, after: float, *, is_once: bool) -> str:
    """A series of which each minute is like the one that was seen, unless that happens once; a counter grows alike."""
    is_counter = name.endswith(("_total", "_bucket", "_count", "_sum"))
    step = max(after - (before or 0), 0) if is_counter and not is_once else 0
    return f"{'_' if before is None else f'{before:.3f}'}x{BEFORE} {after:.3f}+{step:.3f}x{AFTER}"


def test_each_alert_on_what_the_service_tells_is_made_to_fire() -> None:
    groups = yaml.safe_load((CHECKOUT / "deploy/alerts.yml").read_text())["groups"]
    own = [group["rules"] for group in groups if group["name"] != "users-service-surroundings"]
    assert set(CONDITIONS) == {rule["alert"] for rules in own for rule in rules if "alert" in rule}


@pytest.mark.parametrize(
    "command",
    [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],
    ],
)
def test_prometheus_takes_the_files(command: list[str]) -> None:
    program = find_program("promtool")
    if program is None:
        pytest.skip("There is no promtool on this machine; Debian's package prometheus has it.")
    done = subprocess.run([program, *command], cwd=CHECKOUT / "deploy", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", CONDITIONS)
def test_alert_fires_when_what_it_is_for_has_happened(watched: Service, key: str, tmp_path: Path, alert: str) -> None:
    program = find_program("promtool")
    if program is None:
        pytest.skip("There is no promtool on this machine; Debian's package prometheus has it.")
    before = scrape(watched)
    with CONDITIONS[alert](watched, key):
        after = scrape(watched)
    machine = (("job", "users-service"), ("instance", "a"))
    series = [
        {
            "series": f"{name}{{{','.join(f'{label}={json.dumps(text)}' for label, text in labels + machine)}}}",
            "values": write_values(name, before.get((name, labels)), value, is_once=alert in ONCE),
        }
        for (name, labels), value in after.items()
        if not name.startswith(("python_", "process_"))
    ]
    firing = f'count(max_over_time(ALERTS{{alertname="{alert}",alertstate="firing"}}[{AFTER}m])) > bool 0'
    tests = [
        {"expr": firing, "eval_time": f"{BEFORE - 1}m"},
        {"expr": firing, "eval_time": f"{BEFORE + AFTER - 1}m", "exp_samples": [{"labels": "{}", "value": 1}]},
    ]
    file = tmp_path / "test.yml"
    rules = str(CHECKOUT / "deploy/alerts.yml")
    story = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file.write_text(yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "1m", "tests": [story]}))
    done = subprocess.run([program, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
