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
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import CHECKOUT, Copy, Service, get_database_url, wait_for
from tests.system.deployment import frozen
from tests.system.proxies import find_program

TOKEN = "the-token-of-prometheus"
PASSWORD = "four plain words here"
# Minutes before, and after.
BEFORE, AFTER = 20, 40

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def watched(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    variables = {"METRICS_TOKEN": TOKEN, "RATE_LIMIT_PRINCIPAL": "100", "MAX_IN_FLIGHT": "0"}
    service = Service(checkout, **variables, RATE_LIMIT_LOGIN_ACCOUNT="0", RATE_LIMIT_LOGIN_ADDRESS="0")
    yield service
    service.stop()


@pytest.fixture(scope="module")
def key(watched: Service) -> str:
    made = watched.copy.manage("create_api_key", "admin@example.com").stdout.strip()
    # Each minute is like the one that is seen below: its series are there before.
    ask(watched, "/api/v2/posts/1", X_API_Key=made)
    return made


def ask(service: Service, path: str, body: object = None, **headers: str) -> Any:
    """The status of an answer, and its body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": "application/json"}
    request = Request(service.url + path, None if body is None else json.dumps(body).encode(), sent)  # noqa: S310
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def scrape(service: Service) -> Samples:
    status, text = ask(service, "/metrics", Authorization=f"Bearer {TOKEN}", Host="203.0.113.10")
    assert status == 200
    families = text_string_to_metric_families(text.decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples}


def log_in(service: Service, key: str, email: str) -> dict[str, str]:
    """The tokens of a new user."""
    credentials = {"email": email, "password": PASSWORD}
    assert ask(service, "/api/v2/users", credentials | {"name": "Name"}, X_API_Key=key)[0] == 201
    return dict(json.loads(ask(service, "/api/login", credentials)[1])["data"])


@contextmanager
def fault(service: Service, key: str) -> Iterator[None]:
    with psycopg.connect(get_database_url(service.copy), autocommit=True) as database:
        database.execute("ALTER TABLE orders_order RENAME COLUMN item TO thing")
        try:
            assert ask(service, "/api/v2/orders", X_API_Key=key)[0] == 500
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
        assert set(pool.map(lambda _: ask(service, "/api/login", guess)[0], range(70))) == {401}
    yield


@contextmanager
def reused_token(service: Service, key: str) -> Iterator[None]:
    first = log_in(service, key, "reused@example.com")
    second = json.loads(ask(service, "/api/token/refresh", {"refresh_token": first["refresh_token"]})[1])["data"]
    ask(service, "/api/protected", Authorization=f"Bearer {second['access_token']}")
    assert ask(service, "/api/token/refresh", {"refresh_token": first["refresh_token"]})[0] == 401
    yield


@contextmanager
def used_up_quota(service: Service, key: str) -> Iterator[None]:
    token = log_in(service, key, "busy@example.com")["access_token"]
    assert {ask(service, "/api/v2/users", Authorization=f"Bearer {token}")[0] for _ in range(250)} == {200, 429}
    yield


@contextmanager
def slow_statements(service: Service, key: str) -> Iterator[None]:
    with psycopg.connect(get_database_url(service.copy)) as database, ThreadPoolExecutor(20) as pool:
        database.execute("LOCK TABLE posts_post")
        asked = [pool.submit(ask, service, "/api/v2/posts/1", X_API_Key=key) for _ in range(20)]
        database.execute("SELECT pg_sleep(2)")
        database.rollback()
        assert {each.result()[0] for each in asked} <= {200, 404}
    yield


CONDITIONS: dict[str, Callable[[Service, str], Any]] = {
    "ServerErrors": fault,
    "DatabaseAway": silent_database,
    "WorkersRestart": dying_workers,
    "LoginFailures": guessed_passwords,
    "TokensReused": reused_token,
    "QuotasUsedUp": used_up_quota,
    "AnswersSlow": slow_statements,
}


def write_values(name: str, before: float | None, after: float) -> str:
    """A series of which each minute is like the one that was seen; a counter grows as it did."""
    is_counter = name.endswith(("_total", "_bucket", "_count", "_sum"))
    if before is None:
        return f"_x{BEFORE} {after:.3f}x{AFTER}"
    step = max(after - before, 0) if is_counter else 0
    return f"{before:.3f}x{BEFORE} {after:.3f}+{step:.3f}x{AFTER}"


@pytest.mark.parametrize("alert", CONDITIONS)
def test_alert_fires_when_what_it_is_for_has_happened(watched: Service, key: str, tmp_path: Path, alert: str) -> None:
    program = find_program("promtool")
    if program is None:
        pytest.skip("There is no promtool on this machine; Debian's package prometheus has it.")
    before = scrape(watched)
    with CONDITIONS[alert](watched, key):
        after = scrape(watched)
    series = [
        {
            "series": name + json.dumps(dict(labels) | {"job": "users-service", "instance": "a"}),
            "values": write_values(name, before.get((name, labels)), value),
        }
        for (name, labels), value in after.items()
        if not name.startswith(("python_", "process_"))
    ]
    for each in series:
        each["series"] = each["series"].replace('{"', "{").replace('": "', '="').replace('", "', '",')
    firing = f'count(max_over_time(ALERTS{{alertname="{alert}",alertstate="firing"}}[30m])) > bool 0'
    tests = [
        {"expr": firing, "eval_time": f"{BEFORE - 1}m"},
        {"expr": firing, "eval_time": f"{BEFORE + 20}m", "exp_samples": [{"labels": "{}", "value": 1}]},
    ]
    file = tmp_path / "test.yml"
    rules = str(CHECKOUT / "deploy/alerts.yml")
    story = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file.write_text(yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "1m", "tests": [story]}))
    done = subprocess.run([program, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
