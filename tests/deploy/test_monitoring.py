"""The dashboard and the alerts ask for metrics that there are, and each alert has its entry in the runbook."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from django.utils.text import slugify
from prometheus_client.parser import text_string_to_metric_families

from tests.api.wire import send
from tests.service import CHECKOUT
from tests.site.test_metrics import BEARER, TOKEN

DEPLOY = CHECKOUT / "deploy"
# Of PromQL itself, and what Prometheus knows by itself of each machine that it scrapes.
WORDS = {"sum", "max", "min", "by", "and", "or", "unless", "offset", "topk", "rate", "increase", "scalar"}
WORDS |= {"histogram_quantile", "time"}
FOREIGN = {"up"}
# Of the exporters that prometheus.yml names.
FOREIGN |= {"probe_success", "probe_ssl_earliest_cert_expiry", "nginx_responses_total", "pg_stat_archiver_failed_count"}
FOREIGN |= {"node_filesystem_avail_bytes", "node_filesystem_size_bytes"}
RUNBOOK = "https://git.example.com/users-service/blob/main/docs/troubleshooting.md"
# What stands inside is no name of a metric: labels and their values, ranges, and the labels that are grouped by.
_NO_NAMES = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)|\boffset \w+")
_NAME = re.compile(r"[a-z_][a-z0-9_:]*", re.IGNORECASE)


def find_names(expression: str) -> set[str]:
    return set(_NAME.findall(_NO_NAMES.sub("", expression))) - WORDS


def get_rules() -> list[dict[str, str]]:
    groups = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def get_alerts() -> list[dict[str, str]]:
    return [rule for rule in get_rules() if "alert" in rule]


def get_dashboard_expressions() -> Iterator[str]:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]


@pytest.fixture
def exposed(db, settings) -> set[str]:
    """The names of the samples that Prometheus may see, of a metric without any yet the one that it will have."""
    settings.METRICS_TOKEN = TOKEN
    response = send("GET", "/metrics", headers=BEARER)
    assert response.status_code == 200
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    return {
        family.name + ending
        for family in text_string_to_metric_families(response.content.decode())
        for ending in endings.get(family.type, [""])
    }


def test_alerts_ask_for_metrics_that_there_are(exposed):
    recorded = {rule["record"] for rule in get_rules() if "record" in rule}
    for rule in get_rules():
        names = find_names(rule["expr"])
        assert names
        assert names <= exposed | recorded | FOREIGN, rule


def test_dashboard_asks_for_metrics_that_there_are(exposed):
    recorded = {rule["record"] for rule in get_rules() if "record" in rule}
    expressions = list(get_dashboard_expressions())
    for expression in expressions:
        assert find_names(expression) <= exposed | recorded, expression
    # And shows each of the service's own.
    own = {name for name in exposed if not re.match(r"python_|process_|.*_created$", name)}
    assert own <= set().union(*map(find_names, expressions))


def test_panels_of_the_dashboard_do_not_overlap():
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_each_alert_has_an_entry_in_the_runbook():
    text = (CHECKOUT / "docs/troubleshooting.md").read_text()
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    alerts = get_alerts()
    assert list(entries) == [alert["alert"] for alert in alerts]
    for alert in alerts:
        assert alert["annotations"]["runbook"] == f"{RUNBOOK}#{slugify(alert['alert'])}"
        for part in ("Symptom", "Look", "Fix"):
            assert f"**{part}.**" in entries[alert["alert"]], alert["alert"]


def test_each_alert_is_tried():
    tried = yaml.safe_load((DEPLOY / "alerts_test.yml").read_text())["tests"]
    fired = {rule["alertname"] for test in tried for rule in test["alert_rule_test"] if rule["exp_alerts"]}
    assert fired == {alert["alert"] for alert in get_alerts()}


@pytest.mark.parametrize(
    ("upstream", "status", "refused"),
    [
        ("- -", 429, "true"),
        ("users_service 502", 503, "true"),
        ("127.0.0.1:8000, users_service 502, 502", 503, "true"),
        ("127.0.0.1:8000 503", 503, "false"),
        ("[::1]:8000, 10.0.0.2:8000 502, 200", 200, "false"),
    ],
)
def test_what_nginx_refuses_by_itself_is_told_from_its_log(tmp_path, upstream, status, refused):
    program = shutil.which("mtail")
    if program is None:
        pytest.skip("There is no mtail on this machine; Debian has it.")
    log = tmp_path / "access.log"
    log.write_text(
        f"203.0.113.7 [2026-12-01T12:00:00+00:00] GET /users {status} 163 0.001 upstream={upstream} request_id=-\n"
    )
    command = [program, "--progs", DEPLOY / "nginx.mtail", "--logs", log, "--one_shot", "--one_shot_format=prometheus"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counted = f'nginx_responses_total{{prog="nginx.mtail",refused="{refused}",status="{status}"}} 1'
    assert [line for line in told.splitlines() if line.startswith("nginx_")] == [counted]
