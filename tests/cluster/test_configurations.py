"""What stands in deploy/cluster/ is taken by the programs that it is for, as far as is told without running them."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from string import Template

import pytest
import yaml
from django.db import connection

from tests.cluster.installation import write_haproxy_servers
from tests.cluster.programs import DEPLOY
from tests.system.proxies import find_program

PATRONI = yaml.safe_load(Template((DEPLOY / "patroni.yml").read_text()).substitute(defaultdict(lambda: "128MB")))


def test_haproxy_takes_its_configuration(tmp_path: Path) -> None:
    program = find_program("haproxy")
    if program is None:
        pytest.skip("There is no HAProxy on this machine.")
    values = {"ADDRESS": "127.0.0.1", "SERVERS": write_haproxy_servers(["127.0.0.2", "127.0.0.3"])}
    (tmp_path / "haproxy.cfg").write_text(Template((DEPLOY / "haproxy.cfg").read_text()).substitute(values))
    checked = subprocess.run(
        [program, "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_patroni_does_not_replace_what_it_is_told() -> None:
    """It has least values, and a rule, and takes other numbers where they are broken."""
    told = PATRONI["bootstrap"]["dcs"]
    assert told["ttl"] >= 20
    assert told["loop_wait"] >= 1
    assert told["retry_timeout"] >= 3
    assert told["loop_wait"] + 2 * told["retry_timeout"] <= told["ttl"]


@pytest.mark.django_db
def test_postgresql_knows_its_parameters() -> None:
    given = PATRONI["bootstrap"]["dcs"]["postgresql"]["parameters"] | PATRONI["postgresql"]["parameters"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE lower(name) = ANY(%s)", [[*given]])
        assert {name.lower() for (name,) in cursor.fetchall()} == given.keys()


def test_superuser_is_let_in_from_few_addresses() -> None:
    rules = [rule.split() for rule in yaml.safe_load((DEPLOY / "patroni.yml").read_text())["postgresql"]["pg_hba"]]
    from_anywhere = {role for _, _, role, address, _ in rules if address == "${NETWORK}"}
    assert from_anywhere == {"replicator", "rewind", "users-service"}
