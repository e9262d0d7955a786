"""What dies is started again."""

import os
import signal

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import Service, wait_for


@pytest.mark.parametrize("part", ["postmaster", "backend"])
def test_killed_database_returns_and_is_used_within_a_second(service: Service, part: str) -> None:
    url = Cluster(get_accessible_folder(service.copy.folder / ".data/postgresql")).url
    with psycopg.connect(url) as connection:
        victim = service.copy.postmaster() if part == "postmaster" else connection.info.backend_pid
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: not answers(connection))

    wait_for(lambda: accepts(url), seconds=10)
    # Several, on connections of their own: the kernel chooses the worker, so most likely both are asked.
    assert wait_for(lambda: [service.status() for _ in range(4)] == [200] * 4, seconds=5) < 1


def answers(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def accepts(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
