"""What PgBouncer costs where it has a core to run on: the same worker, with and without it, in turn.

    PGBOUNCER=/path/to/it python -m benchmarks.pooler --size 100k --seconds 5 --rounds 3

The worker is pinned to one core; PostgreSQL, PgBouncer and the load have the others.
"""

from __future__ import annotations

import os
import statistics
import sys
from argparse import Namespace
from contextlib import ExitStack

from benchmarks import cases
from benchmarks.measuring import Meter
from benchmarks.options import build_parser
from benchmarks.quotas import LOG_INS, SECONDS_TO_WARM_UP
from benchmarks.systems import System, copied, filled, postgresql
from tests.plugins.pgbouncer import PROGRAM, pooled

CONNECTIONS = 16


def main() -> None:
    options = build_parser("benchmarks.pooler").parse_args()
    if PROGRAM is None:
        sys.exit("There is no PgBouncer: set PGBOUNCER.")
    first, *others = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        # Threads and processes that start from here on inherit it.
        os.sched_setaffinity(0, others)
        cluster = stack.enter_context(postgresql())
        database = stack.enter_context(copied(cluster, filled(cluster, options.size)))
        pooler = stack.enter_context(pooled(cluster, PROGRAM, database=database.rpartition("/")[2]))
        variants = {
            "direct": {},
            "PgBouncer": {
                "DATABASE_URL": pooler,
                "DATABASE_MIGRATION_URL": database,
            },
        }
        systems = {}
        for name, variables in variants.items():
            os.sched_setaffinity(0, {first})
            systems[name] = System("product", database, WORKERS="1", **LOG_INS, **variables)
            os.sched_setaffinity(0, others)
            stack.callback(systems[name].stop)
            systems[name].wait()
        meter = Meter(cluster)
        print("| Case | direct, req/s | PgBouncer, req/s | × |\n|---|---:|---:|---:|")
        for case in options.cases:
            _compare(meter, systems, case, options)


def _compare(meter: Meter, systems: dict[str, System], case: str, options: Namespace) -> None:
    """Prints a line: the medians of all rounds."""
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(options.rounds + 1):
        for name, system in systems.items():
            requests = cases.requests_of(case, system, options.size)
            seconds = options.seconds if number else SECONDS_TO_WARM_UP
            took = meter.measured(system, case, options.size, requests, connections=CONNECTIONS, seconds=seconds)
            rates[name] += [took.rate] * bool(number)
    direct, through = map(statistics.median, rates.values())
    print(f"| {case} | {direct:,.0f} | {through:,.0f} | {through / direct:.2f} |", flush=True)


if __name__ == "__main__":
    main()
