"""Every migration on a big database, while the release before it serves."""

from __future__ import annotations

import re
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.service import Service
from tests.releases.release import describe, find_release_before_the_rule, released
from tests.releases.traffic import traffic
from tests.service import Copy, temporary_copy

RATE = 50.0
MAX_SECONDS_OF_A_REQUEST = 0.5
SECONDS_OF_QUIET = 10.0
_MISSING = re.compile(r"^\[ \]\s+(\w+)\.(\w+)", re.MULTILINE)
# As `serve` does it: nobody else migrates, and no statement is too long.
_MIGRATE = """
from django.core.management import call_command
from config.management.migrations import setup_lock
with setup_lock():
    call_command("migrate", "{app}", "{name}", interactive=False, verbosity=0)
"""


def run(users: int, folder: Path, commit: str = "") -> bool:
    """Migrates from the schema of a commit to that of this release, and returns whether no request waited for long.

    Args:
        users: how many there are, with an order and a post each.
        folder: for the database and the log.
        commit: of the release that serves; the last one that was made without the rule, if empty.
    """
    commit = commit or find_release_before_the_rule()
    print(f"{describe(commit)} serves", flush=True)
    cluster = Cluster(get_accessible_folder(folder / "server"))
    with released(commit) as before, temporary_copy("service") as copy, cluster.supervised():
        service = Service(before, cluster.url, folder / "log", 2)
        key = service.start()["API key"]
        rows = ("--users", str(users), "--orders-per-user", "1", "--posts-per-user", "1")
        _manage(before, cluster.url, "seed", *rows)
        missing = _MISSING.findall(_manage(copy, cluster.url, "showmigrations", "--plan"))
        print(f"{users:,} users with an order and a post each are there", flush=True)
        windows = {}
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as pool,
            traffic(pool, service, key, 1, rate=RATE, stop=folder / "stop") as seen,
        ):
            start = time.perf_counter()
            time.sleep(SECONDS_OF_QUIET)
            windows["(no migration)"] = start, time.perf_counter()
            for app, name in missing:
                start = time.perf_counter()
                _manage(copy, cluster.url, "shell", "-c", _MIGRATE.format(app=app, name=name))
                windows[f"{app}.{name}"] = start, time.perf_counter()
        service.stop()
    print("| Migration | Took s | Requests | Failed | Longest request ms |\n|---|---|---|---|---|")
    is_right = bool(missing)
    for name, (start, end) in windows.items():
        outcomes = seen.outcomes(start, end)
        failed = sum(outcome.status not in {200, 201} for outcome in outcomes)
        longest = max(outcome.seconds for outcome in outcomes)
        is_right = is_right and not failed and longest <= MAX_SECONDS_OF_A_REQUEST
        print(f"| {name} | {end - start:.1f} | {len(outcomes):,} | {failed} | {longest * 1000:.0f} |")
    bound = f"longer than {MAX_SECONDS_OF_A_REQUEST * 1000:.0f} ms"
    print(f"No request failed or took {bound}" if is_right else f"Broken: a request failed or took {bound}", flush=True)
    return is_right


def _manage(copy: Copy, database: str, *arguments: str) -> str:
    process = copy.start(".venv/bin/python", "manage.py", *arguments, LOCAL="true", DATABASE_URL=database)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output
