"""What it costs to count requests: in the database, in Redis, and not at all.

    python -m benchmarks.quotas --size 100k --seconds 5 --rounds 3 --cases get_user,list_first

It needs Debian's `redis-server`. The three are measured in turn, round after round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory

import psutil

from benchmarks import cases
from benchmarks.measuring import Meter, Round, cpu, size
from benchmarks.systems import System, copied, filled, postgresql
from config.local.cluster import Cluster

UNLIMITED = dict.fromkeys(("RATE_LIMIT_PRINCIPAL", "RATE_LIMIT_ANONYMOUS"), "0")
SECONDS_TO_WARM_UP = 1.0
FIELDS = ("rate", "database", "server", "p50", "p99")


class QuotaMeter:
    """Measures the systems in turn, and what Redis takes beside them.

    Args:
        systems: by what counts for them.
        redis: the process that counts for one of them.
        options: of the command.
    """

    def __init__(
        self, cluster: Cluster, systems: Mapping[str, System], redis: psutil.Process, options: argparse.Namespace
    ) -> None:
        self._meter, self._systems, self._redis, self._options = Meter(cluster), systems, redis, options

    def compare(self, case: str, connections: int) -> None:
        """Prints a line for each system: the medians of all rounds."""
        found: dict[str, list[tuple[Round, float]]] = {name: [] for name in self._systems}
        for system in self._systems.values():
            self._measure(system, case, connections, SECONDS_TO_WARM_UP)
        for _ in range(self._options.rounds):
            for name, system in self._systems.items():
                found[name].append(self._measure(system, case, connections, self._options.seconds))
                print(f"{case} {connections} {name} {found[name][-1][0].rate:,.0f}/s", file=sys.stderr, flush=True)
        for name, rounds in found.items():
            medians = [statistics.median(getattr(took, field) for took, _ in rounds) for field in FIELDS]
            rate, *seconds = [*medians, statistics.median(spent for _, spent in rounds)]
            columns = [case, str(connections), name, f"{rate:,.0f}", *(f"{each:.3f}" for each in seconds)]
            print(f"| {' | '.join(columns)} |", flush=True)

    def _measure(self, system: System, case: str, connections: int, seconds: float) -> tuple[Round, float]:
        """A round, and the milliseconds of Redis for a request."""
        sent = cases.requests_of(case, system, self._options.size)
        before = cpu(self._redis)
        took = self._meter.measured(system, case, self._options.size, sent, connections=connections, seconds=seconds)
        return took, (cpu(self._redis) - before) * 1000 / (took.rate * seconds)


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        cluster = stack.enter_context(postgresql())
        database = stack.enter_context(copied(cluster, filled(cluster, options.size)))
        url, redis = stack.enter_context(_redis())
        systems = {}
        for name, variables in {"PostgreSQL": {}, "Redis": {"QUOTA_URL": url}, "nothing": UNLIMITED}.items():
            systems[name] = System("product", database, **variables)
            stack.callback(systems[name].stop)
            systems[name].wait()
        meter = QuotaMeter(cluster, systems, redis, options)
        print("| Case | Connections | Counts | req/s | PostgreSQL ms | Server ms | p50 ms | p99 ms | Redis ms |")
        print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
        for case in options.cases:
            for connections in options.connections:
                meter.compare(case, connections)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.quotas")
    parser.add_argument("--size", type=size, default="100k")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=lambda text: list(map(int, text.split(","))), default="1,16")
    parser.add_argument("--cases", type=lambda text: text.split(","), default="get_user,list_first")
    return parser.parse_args()


@contextmanager
def _redis() -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a Redis without a disk."""
    with TemporaryDirectory() as folder:
        address = f"{folder}/redis"
        command = ["redis-server", "--port", "0", "--unixsocket", address, "--save", "", "--dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield f"unix://{address}", psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    main()
