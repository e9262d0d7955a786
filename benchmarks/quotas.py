"""What a read costs the primary: where it counts requests and gives the rows, or Redis or a replica does that for it.

    python -m benchmarks.quotas --size 100k --seconds 5 --rounds 3 --cases get_user,list_first

It needs Debian's `redis-server`. The systems are measured in turn, round after round.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks import cases
from benchmarks.measuring import Meter, Round, cpu, tree
from benchmarks.options import build_parser
from benchmarks.systems import System, address, copied, filled, postgresql
from config.local.account import create_private_folder, get_accessible_folder, get_server_account
from config.local.cluster import Cluster

UNLIMITED = {"RATE_LIMIT_PRINCIPAL": "0"}
# All callers log in from one address.
LOG_INS = dict.fromkeys(("RATE_LIMIT_ANONYMOUS", "RATE_LIMIT_LOGIN_ADDRESS"), "0")
SECONDS_TO_WARM_UP = 1.0
SECONDS_TO_LOOK = 0.5
FIELDS = ("rate", "database", "server", "p50", "p99")


class QuotaMeter:
    """Measures the systems in turn, and what Redis takes beside them.

    Args:
        systems: by what counts for them.
        redis: the process that counts for one of them.
        options: of the command.
    """

    def __init__(
        self, cluster: Cluster, systems: Mapping[str, System], redis: psutil.Process, options: Namespace
    ) -> None:
        self._meter, self._systems, self._redis, self._options = Meter(cluster), systems, redis, options
        # Of PostgreSQL, milliseconds a request in each case.
        self._database: dict[str, list[float]] = {name: [] for name in systems}

    def print_means(self) -> None:
        """Prints what PostgreSQL spends on a request of each case in turn, and how much less than where it counts."""
        means = {name: statistics.mean(found) for name, found in self._database.items()}
        most = means["PostgreSQL"]
        for name, mean in means.items():
            print(f"| all cases, {name} | {mean:.3f} | {1 - mean / most:.1%} less |")

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
            self._database[name].append(medians[FIELDS.index("database")])
            rate, *seconds = [*medians, statistics.median(spent for _, spent in rounds)]
            columns = [case, str(connections), name, f"{rate:,.0f}", *(f"{each:.3f}" for each in seconds)]
            print(f"| {' | '.join(columns)} |", flush=True)

    def _measure(self, system: System, case: str, connections: int, seconds: float) -> tuple[Round, float]:
        """A round, and the milliseconds of Redis for a request."""
        users = self._options.size
        with self._alone(system):
            sent = cases.requests_of(case, system, users)
            before = cpu(self._redis)
            took = self._meter.measured(system, case, users, sent, connections=connections, seconds=seconds)
            return took, (cpu(self._redis) - before) * 1000 / (took.rate * seconds)

    @contextmanager
    def _alone(self, system: System) -> Iterator[None]:
        """The others stand still: those with replicas ask the primary where it is all the time."""
        others = [
            process for each in self._systems.values() if each is not system for process in tree(each.process.pid)
        ]
        for process in others:
            process.suspend()
        # Until it knows again where its replica is.
        time.sleep(SECONDS_TO_LOOK)
        try:
            yield
        finally:
            for process in others:
                process.resume()


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        cluster = stack.enter_context(postgresql())
        database = stack.enter_context(copied(cluster, filled(cluster, options.size)))
        url, redis = stack.enter_context(_redis())
        systems = {}
        replicas = {"DATABASE_REPLICA_URLS": address(stack.enter_context(_standby(cluster)), "run")}
        variants = {
            "PostgreSQL": {},
            "Redis": {"QUOTA_URL": url},
            "nothing": UNLIMITED,
            "PostgreSQL, replica": replicas,
            "Redis, replica": {"QUOTA_URL": url, **replicas},
        }
        for name, variables in variants.items():
            systems[name] = System("product", database, **LOG_INS, **variables)
            stack.callback(systems[name].stop)
            systems[name].wait()
        meter = QuotaMeter(cluster, systems, redis, options)
        print("| Case | Connections | Counts | req/s | PostgreSQL ms | Server ms | p50 ms | p99 ms | Redis ms |")
        print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
        for case in options.cases:
            for connections in options.connections:
                meter.compare(case, connections)
        meter.print_means()


def _options() -> Namespace:
    parser = build_parser("benchmarks.quotas", cases="get_user,list_first")
    parser.add_argument("--connections", type=lambda text: list(map(int, text.split(","))), default="1,16")
    return parser.parse_args()


@contextmanager
def _standby(primary: Cluster) -> Iterator[Cluster]:
    """A streaming standby, on a folder of its own."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        standby = Cluster(get_accessible_folder(Path(folder) / "standby"), primary.settings)
        create_private_folder(standby.folder, *get_server_account(standby.folder))
        source = ["--host", str(primary.sockets), "--username", "postgres", "--checkpoint=fast"]
        standby._run("pg_basebackup", ["--pgdata", str(standby.data), "--write-recovery-conf", *source])
        with standby.running():
            yield standby


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
