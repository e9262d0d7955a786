"""Webhooks of the running service: its deliverers are killed, and of a thousand endpoints some hang and some refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.service import CHECKOUT, Service, ask, get_database_url, get_key, wait_for

ENDPOINTS, HANGING, REFUSING = 1_000, 100, 100
# 200 is what two cores shall bear that have nothing else to do.
EVENTS_A_SECOND, SECONDS = int(os.environ.get("EVENTS_A_SECOND", "0")), 30
MOST_SECONDS = 2.0

_ADD_USERS = """
INSERT INTO users_user (name, email, password, role, status, email_is_trusted)
SELECT 'Owner', 'owner' || number || '@example.org', '!', 'user', 'active', true FROM generate_series(1, %s) AS number
RETURNING id
"""
# With the secret of one that was made by a request.
_ADD_WEBHOOKS = """
INSERT INTO config_webhook (user_id, url, types, description, status, disabled_reason, scopes, version, secret)
SELECT added.id, added.url, types, '', status, '', scopes, version, secret
FROM config_webhook, unnest(%s::bigint[], %s::text[]) AS added (id, url) WHERE config_webhook.id = %s
"""
# What became of attempts that were sent to endpoints that answer, and failed.
_FAILED = """
SELECT attempt ->> 'status', attempt ->> 'error', count(*)
FROM config_webhookdelivery AS delivery JOIN config_webhook AS webhook ON webhook.id = webhook_id,
    jsonb_array_elements(attempts) AS attempt
WHERE url LIKE %s AND (attempt ->> 'status') IS DISTINCT FROM '204' GROUP BY 1, 2
"""


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[tuple[int, int, Path]]:
    """The port of those that answer, and of those that hang, and where the former tell what they get."""
    lines = tmp_path / "received"
    with lines.open("w") as out:
        command = [sys.executable, "-u", "-m", "tests.system.receivers"]
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=out)
        wait_for(lambda: lines.read_text().endswith("\n"))
        answering, hanging = map(int, lines.read_text().split())
        yield answering, hanging, lines
        process.kill()
        process.wait()


@pytest.mark.skipif(not EVENTS_A_SECOND, reason="It measures a machine with nothing else to do: EVENTS_A_SECOND=200.")
def test_dead_endpoints_delay_no_other(
    service: Service, first_start: list[str], receivers: tuple[int, int, Path], capsys: Any
) -> None:
    answering, hanging, lines = receivers
    key = {"X-API-Key": get_key(first_start)}
    body = {"url": f"http://127.0.0.1:{answering}/first", "types": ["order.created"]}
    made = ask(service, "/api/v2/webhooks", "POST", body, **key)
    assert made.status == 201, made.content
    sent: dict[int, float] = {}
    with psycopg.connect(get_database_url(service.copy), autocommit=True) as database:
        owners = [row[0] for row in database.execute(_ADD_USERS, [ENDPOINTS]).fetchall()]
        # A port below 1024, at which nobody listens, would be refused by the service itself.
        ports = [hanging] * HANGING + [1025] * REFUSING + [answering] * (ENDPOINTS - HANGING - REFUSING)
        urls = [f"http://127.0.0.1:{port}/{owner}" for owner, port in zip(owners, ports, strict=True)]
        webhook_id = made.json()["data"]["id"]
        # Whoever delivers has started by then.
        pinged = ask(service, f"{made.headers['Location']}/pings", "POST", **key)
        assert pinged.status == 202, pinged.content
        wait_for(lambda: "webhook.ping" in lines.read_text())
        database.execute(_ADD_WEBHOOKS, [owners, urls, webhook_id])
        database.execute("DELETE FROM config_webhookdelivery WHERE webhook_id = %s", [webhook_id])
        database.execute("DELETE FROM config_webhook WHERE id = %s", [webhook_id])
        began = time.time()
        for number in range(EVENTS_A_SECOND * SECONDS):
            time.sleep(max(0.0, began + number / EVENTS_A_SECOND - time.time()))
            owner = owners[number * 7 % ENDPOINTS]
            add = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, 'Tea', 1) RETURNING id"
            ((order,),) = database.execute(add, [owner]).fetchall()
            if number * 7 % ENDPOINTS >= HANGING + REFUSING:
                sent[order] = time.time()
        wrote = time.time() - began
    wait_for(lambda: lines.read_text().count("\n") > len(sent) + 1, 120)
    with psycopg.connect(get_database_url(service.copy)) as database:
        again = database.execute(_FAILED, [f"http://127.0.0.1:{answering}/%"]).fetchall()
    received: dict[int, float] = {}
    for line in lines.read_text().splitlines()[2:]:
        one = json.loads(line)
        received.setdefault(one["event"]["resource"]["id"], one["at"])
    delays = sorted(received[order] - at for order, at in sent.items())
    p50, p99, most = (delays[round((len(delays) - 1) * part)] for part in (0.5, 0.99, 1))
    with capsys.disabled():
        figures = f"{again}; median {p50:.3f} s, p99 {p99:.3f} s, longest {most:.3f} s"
        print(f"\n{len(delays)} of {EVENTS_A_SECOND * SECONDS} events in {wrote:.0f} s: {figures}")
    assert p99 < MOST_SECONDS
