"""This release on the schema of a second one, and both at once."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psycopg

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.service import Service, manage
from tests.releases.second_release import second_release
from tests.releases.traffic import traffic
from tests.service import Copy, temporary_copy

RATE = 20.0
# Those of pyproject.toml without the plugin that would start a database of its own.
_OPTIONS = "-p tests.plugins.secrecy -p tests.plugins.described --strict-markers -q"


def run(folder: Path) -> bool:
    """Runs both releases on the schema of the second one, and returns whether neither failed.

    Args:
        folder: for the database and the logs.
    """
    cluster = Cluster(get_accessible_folder(folder / "server"))
    with temporary_copy("first") as first, second_release() as second, cluster.supervised():
        keys = {"SECRET_KEY": secrets.token_urlsafe(48), "JWT_SIGNING_KEY": secrets.token_urlsafe(48)}
        new = Service(second, cluster.url, folder / "new.log", 2, **keys)
        key = new.start()["API key"]
        old = Service(first, cluster.url, folder / "old.log", 2, **keys)
        old.start()
        _create_migrated(cluster, second)
        with (
            ProcessPoolExecutor(2, get_context("spawn")) as pool,
            traffic(pool, old, key, 1, rate=RATE, stop=folder / "stop-old") as on_old,
            traffic(pool, new, key, 2, rate=RATE, stop=folder / "stop-new") as on_new,
        ):
            start = time.monotonic()
            passed = _run_contract(first, cluster.url)
            took = time.monotonic() - start
        for service in (old, new):
            service.stop()
    is_right = passed
    print(
        f"The contract tests of this release {'pass' if passed else 'fail'} on the schema of the second ({took:.0f} s)"
    )
    for name, seen in {"this release": on_old, "the second": on_new}.items():
        outcomes = seen.offered.outcomes
        failed = [outcome.status for outcome in outcomes if outcome.status not in {200, 201}]
        is_right = is_right and not failed and bool(outcomes)
        print(f"{len(outcomes):,} requests to {name}, beside the other one: {len(failed)} failed {sorted(set(failed))}")
    return is_right


def _create_migrated(cluster: Cluster, copy: Copy) -> None:
    """Creates the database of the tests, migrated by a release."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE test_service")
    url = cluster.url.removesuffix("service") + "test_service"
    manage(copy, url, "migrate", "--verbosity", "0")


def _run_contract(release: Copy, database: str) -> bool:
    """Runs the contract tests of a release on a database that is migrated already."""
    process = release.start(
        *(".venv/bin/python", "-m", "pytest", "tests/contract", "--reuse-db", "-p", "no:cacheprovider"),
        *("-o", f"addopts={_OPTIONS}"),
        LOCAL="false",
        DATABASE_URL=database,
        SECRET_KEY=secrets.token_urlsafe(48),
        JWT_SIGNING_KEY=secrets.token_urlsafe(48),
        ALLOWED_HOSTS="api.example.com,testserver,localhost,127.0.0.1",
        PUBLIC_URL="https://api.example.com",
        RATE_LIMIT_PRINCIPAL="1000000",
        RATE_LIMIT_ANONYMOUS="1000000",
    )
    output, errors = process.communicate()
    if process.returncode:
        print(output[-3000:], errors[-1000:])
    return process.returncode == 0
