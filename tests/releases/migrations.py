"""The migrations of a second release on a big database, while this one serves."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.service import deployed, manage
from tests.releases.second_release import MIGRATIONS, second_release
from tests.releases.traffic import traffic
from tests.service import temporary_copy

RATE = 50.0
MAX_SECONDS_OF_A_REQUEST = 0.5
SECONDS_OF_QUIET = 10.0


def run(users: int, folder: Path) -> bool:
    """Applies the migrations of the second release, and returns whether no request waited for long.

    Args:
        users: how many there are, with an order and a post each.
        folder: for the database and the log.
    """
    cluster = Cluster(get_accessible_folder(folder / "server"))
    with (
        temporary_copy("first") as first,
        second_release() as second,
        cluster.supervised(),
        deployed(first, cluster.url, folder / "log", 2) as (service, started),
    ):
        rows = ("--users", str(users), "--orders-per-user", "1", "--posts-per-user", "1")
        manage(first, cluster.url, "seed", *rows)
        print(f"{users:,} users with an order and a post each are there", flush=True)
        windows = {}
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as pool,
            traffic(pool, service, started["API key"], 1, rate=RATE, stop=folder / "stop") as seen,
        ):
            start = time.perf_counter()
            time.sleep(SECONDS_OF_QUIET)
            windows["(no migration)"] = start, time.perf_counter()
            for name in [path.stem for path in MIGRATIONS]:
                start = time.perf_counter()
                manage(second, cluster.url, "migrate", "orders", name)
                windows[name] = start, time.perf_counter()
    print("| Migration | Took s | Requests | Failed | Longest request ms |\n|---|---|---|---|---|")
    is_right = True
    for name, (start, end) in windows.items():
        outcomes = seen.outcomes(start, end)
        failed = sum(outcome.status not in {200, 201} for outcome in outcomes)
        longest = max(outcome.seconds for outcome in outcomes)
        is_right = is_right and not failed and longest <= MAX_SECONDS_OF_A_REQUEST
        print(f"| {name} | {end - start:.1f} | {len(outcomes):,} | {failed} | {longest * 1000:.0f} |")
    bound = f"longer than {MAX_SECONDS_OF_A_REQUEST * 1000:.0f} ms"
    print(f"No request failed or took {bound}" if is_right else f"Broken: a request failed or took {bound}", flush=True)
    return is_right
