"""The parts of the soak: its network, and what is judged at the end."""

import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from tests.faults.proxy import SOCKET
from tests.faults.report import Report
from tests.load.probe import Health
from tests.soak import network as bad
from tests.soak.network import Network
from tests.soak.trial import Memory, Outcome


@pytest.fixture
def network(transactional_db):
    with Network(Path(connection.settings_dict["HOST"]) / SOCKET) as between:
        yield between


def connect(network):
    name = connection.settings_dict["NAME"]
    return psycopg.connect(f"postgresql://postgres@127.0.0.1:{network.port}/{name}?sslmode=disable", autocommit=True)


def happen(network, monkeypatch, event):
    """Has an event happen, and no other."""
    monkeypatch.setattr(bad, "EVENTS", {event: 1})
    network.seconds = 0.001
    deadline = time.monotonic() + 10
    while not network.events and time.monotonic() < deadline:
        time.sleep(0.001)
    network.seconds = None
    assert set(network.events) == {event}


def test_network_carries_both_ways(network):
    with connect(network) as carried:
        assert carried.execute("SELECT repeat('x', 200000)").fetchone() == ("x" * 200_000,)
    assert not network.events


def test_network_that_stalls_carries_on(network, monkeypatch):
    monkeypatch.setattr(bad, "STALLS", (0.3, 0.3))
    with connect(network) as carried:
        happen(network, monkeypatch, "stall")
        start = time.monotonic()
        assert carried.execute("SELECT 1").fetchone() == (1,)
        assert time.monotonic() - start > 0.1


@pytest.mark.parametrize("event", ["reset", "outage"])
def test_network_drops_connections_and_takes_new_ones(network, monkeypatch, event):
    monkeypatch.setattr(bad, "OUTAGE", 0.1)
    with connect(network) as carried:
        happen(network, monkeypatch, event)
        with pytest.raises(psycopg.OperationalError):
            carried.execute("SELECT 1")
    with connect(network) as carried:
        assert carried.execute("SELECT 1").fetchone() == (1,)


def outcome(late, *, lost=(), unexpected=()):
    report = Report(lost=[*lost])
    early = {1: Memory(100.0, 50.0)}
    health = Health(0.01, 0.0, Counter({200: 9}))
    return Outcome(report, Counter({200: 9}), [*unexpected], health, Counter(), Counter(), 60.0, early, late)


@pytest.mark.parametrize(
    ("late", "grown"),
    [({1: Memory(110.0, 60.0)}, []), ({1: Memory(110.1, 60.0)}, [1]), ({}, [1])],
    ids=["a tenth more", "more than a tenth", "gone"],
)
def test_memory_may_grow_by_a_tenth(late, grown):
    found = outcome(late)
    assert found.grown == grown
    assert found.right == (not grown)


@pytest.mark.parametrize("fault", [{"lost": [7]}, {"unexpected": [("GET", "/", 500, b"")]}])
def test_what_is_lost_or_unexpected_is_a_failure(fault):
    found = outcome({1: Memory(100.0, 50.0)}, **fault)
    assert not found.right
    assert any("7" in line or "500" in line for line in found.lines())
