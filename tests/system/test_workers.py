"""What several workers do as one, and one for several requests: quotas, metrics, and answers given before Django."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import PREFIX_CHARACTERS
from config.management.demo.load import USER_COUNT
from config.management.demo.rows import START, build_user
from tests.service import Copy, Service, ask, get_rest, wait_for
from users.models import Status

TOKEN = "the-token-of-prometheus"
QUOTA = 100
SETTINGS = {
    "WORKERS": "3",
    "RATE_LIMIT_PRINCIPAL": str(QUOTA),
    "RATE_LIMIT_ANONYMOUS": "0",
    "METRICS_TOKEN": TOKEN,
    "CORS_ALLOWED_ORIGINS": "https://app.example",
}


_PEOPLE = (build_user(number, START) for number in range(10, USER_COUNT))
_UNUSED = (str(person["email"]) for person in _PEOPLE if person["status"] == Status.ACTIVE)


@pytest.fixture(scope="module")
def limited(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    running = Service(checkout, **SETTINGS)
    yield running
    running.stop()


@pytest.fixture
def key(limited: Service) -> dict[str, str]:
    """A key of a user who has used nothing of the quota."""
    return {"X-API-Key": limited.copy.manage("create_api_key", next(_UNUSED)).stdout.strip()}


def samples(service: Service) -> dict[tuple[str, str], float]:
    """The sum of each metric by route, version or cause."""
    text = ask(service, "/metrics", Authorization=f"Bearer {TOKEN}").content.decode()
    found: Counter[tuple[str, str]] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            label = next((sample.labels[name] for name in ("route", "version", "cause") if name in sample.labels), None)
            found[sample.name, label] += sample.value
    return found


def folder_of_metrics(service: Service) -> Path:
    """Where the workers hold the locks of their slots."""
    open_files = [Path(file.path) for pid in service.workers() for file in psutil.Process(pid).open_files()]
    (folder,) = {file.parent for file in open_files if file.suffix == ".lock" and "metrics-" in str(file)}
    return folder


def test_metrics_are_summed_over_workers_also_dead_ones(limited: Service) -> None:
    counted = ("http_requests_total", "/health/live")
    before = samples(limited)[counted]
    for _ in range(30):
        assert ask(limited, "/health/live").status == 200
    assert samples(limited)[counted] == before + 30
    folder = folder_of_metrics(limited)
    # Each of three workers has a process of the slow lane beside it, and one of these may still be ending.
    kinds = ("counter", "histogram", "gauge_sum", "gauge_max")
    files = {f"{slot}.lock" for slot in range(7)} | {f"{kind}_{slot}.db" for kind in kinds for slot in range(7)}
    before_deaths = samples(limited)
    for _ in range(3):
        workers = limited.workers()
        os.kill(workers[0], signal.SIGKILL)
        wait_for(lambda: workers[0] not in limited.workers() and len(limited.workers()) == len(workers), seconds=20)  # noqa: B023
    for _ in range(30):
        wait_for(lambda: is_alive(limited))
    assert samples(limited)[counted] >= before + 60
    # Beside each worker, the process of its slow lane is started, too.
    assert samples(limited)["worker_starts_total", "death"] == before_deaths["worker_starts_total", "death"] + 6
    assert samples(limited)["worker_starts_total", "plan"] == before_deaths["worker_starts_total", "plan"]
    assert {path.name for path in folder.iterdir()} <= files


def is_alive(service: Service) -> bool:
    try:
        return ask(service, "/health/live").status == 200
    except OSError:
        return False


def test_what_is_refused_before_django_sees_it_counts_and_carries_every_header(
    limited: Service, key: dict[str, str]
) -> None:
    body = b" " * (2 * 1024 * 1024)
    refused = [ask(limited, "/api/v1/orders", "POST", body, Origin="https://app.example", **key) for _ in range(2)]
    for number, answer in enumerate(refused):
        assert answer.status == 413
        assert answer.headers["RateLimit"].startswith(f'"principal";r={QUOTA - 1 - number};t=')
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_folder_of_the_metrics_goes_with_the_service(checkout: Copy, first_start: list[str]) -> None:
    service = Service(checkout)
    folder = folder_of_metrics(service)
    assert folder.is_dir()
    service.stop()
    assert not folder.exists()


def test_the_use_of_versions_is_summed_over_workers_and_written_down(limited: Service, key: dict[str, str]) -> None:
    counted = ("api_version_requests_total", "2")
    before = samples(limited)[counted]
    for _ in range(30):
        assert ask(limited, "/api/v2/users", **key).status == 200
    assert samples(limited)[counted] == before + 30
    prefix = key["X-API-Key"][:PREFIX_CHARACTERS]
    query = f"VersionUse.objects.filter(version=2, credential='{prefix}').values_list('count', flat=True)"

    def written() -> bool:
        printed = limited.copy.manage("shell", "-c", f"from config.models import VersionUse; print(list({query}))")
        return "[30]" in printed.stdout

    wait_for(written)


def test_requests_that_one_worker_runs_together_are_told_apart(
    checkout: Copy, first_start: list[str], request: pytest.FixtureRequest
) -> None:
    """Each caller sees itself, and its own quota one less each time."""
    emails = [next(_UNUSED) for _ in range(12)]
    keys = [checkout.manage("create_api_key", email).stdout.strip() for email in emails]
    calls = 40

    def call(place: int) -> tuple[set[str], list[int], set[int]]:
        connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
        seen, left, statuses = set(), [], set()
        for _ in range(calls):
            connection.request("GET", "/api/v1/users", headers={"X-API-Key": keys[place]})
            response = connection.getresponse()
            body = json.loads(response.read())
            statuses.add(response.status)
            if response.status == HTTPStatus.OK:
                left.append(get_rest(response.headers))
                seen |= {user["email"] for user in body["data"]}
        connection.close()
        return seen, left, statuses

    service = Service(checkout, WORKERS="1", RATE_LIMIT_PRINCIPAL=str(QUOTA), RATE_LIMIT_ANONYMOUS="0")
    try:
        assert ask(service, "/api/v1/users", "GET", X_API_Key="wrong").status == HTTPStatus.UNAUTHORIZED
        # After the start, which takes a part of the minute.
        request.getfixturevalue("one_minute")
        with ThreadPoolExecutor(len(keys)) as pool:
            found = list(pool.map(call, range(len(keys))))
    finally:
        service.stop()
    assert [(seen, statuses) for seen, _, statuses in found] == [({email}, {200}) for email in emails]
    assert [left for _, left, _ in found] == [list(range(QUOTA - 1, QUOTA - 1 - calls, -1))] * len(keys)


def test_lines_of_all_workers_are_written_before_the_service_ends_and_add_up_to_its_metrics(
    checkout: Copy, first_start: list[str]
) -> None:
    service = Service(checkout, METRICS_TOKEN=TOKEN)
    key = checkout.manage("create_api_key", "admin@example.com").stdout.strip()
    for number in range(50):
        assert ask(service, "/api/v1/users", X_API_Key=key, X_Request_Id=f"fast-{number}").status == 200
        assert ask(service, "/", X_Request_Id=f"slow-{number}", Accept="text/html").status == 200
        assert ask(service, "/health/live", X_Request_Id=f"none-{number}").status == 200
    scraped = ask(service, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert service.stop() == 0
    told = [line for line in map(json.loads, service.log.read_text().splitlines()) if line["logger"] == "request"]
    told = [line for line in told if line["route"] != "/metrics"]
    # `serve` has asked before it told its address, by no name.
    told = [line for line in told if line["request_id"].partition("-")[0] in {"fast", "slow", "none"}]
    lanes = {line["request_id"]: line["lane"] for line in told}
    assert lanes == {f"{lane}-{number}": lane for lane in ("fast", "slow", "none") for number in range(50)}
    assert len(told) == 150
    assert key not in service.log.read_text()
    samples: Counter[tuple[str, str]] = Counter()
    for family in text_string_to_metric_families(scraped.content.decode()):
        for sample in family.samples:
            samples[sample.name, sample.labels.get("lane", "")] += sample.value
    assert samples["http_requests_total", ""] == 151
    for lane in ("fast", "slow"):
        statements = sum(line["statements"] for line in told if line["lane"] == lane)
        milliseconds = sum(line["database_ms"] for line in told if line["lane"] == lane)
        assert samples["database_statements_total", lane] == statements > 0
        assert 1000 * samples["database_statement_seconds_total", lane] == pytest.approx(milliseconds, abs=1)
