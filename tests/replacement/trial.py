"""A service that is replaced while requests arrive at a steady rate: behind nginx, and by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from benchmarks.measuring import milliseconds
from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.faults.service import Service
from tests.load.arrivals import KEY, Offered, Plan, offer
from tests.load.client import wire
from tests.service import find_free_port, temporary_copy, wait_for
from tests.system.proxies import (
    HOST,
    Certificate,
    Ports,
    configure_nginx,
    find_program,
    make_certificate,
    run_proxy,
)

WORKERS = 2
# deploy/nginx.conf takes 64 of an address.
CONNECTIONS = 40
# Before and after the replacement.
SECONDS_AROUND = 3.0
MAX_SECONDS_OF_A_CASE = 60.0


@dataclass
class World:
    """Services on one database, and nginx in front of them.

    Attributes:
        start: starts one more service.
        services: those that run; clients are to reach the first one.
        key: of an administrator.
    """

    start: Callable[[], Service]
    folder: Path
    ports: Ports
    certificate: Certificate
    key: str
    services: list[Service] = field(default_factory=list)
    nginx: subprocess.Popen[bytes] | None = None

    def lead_to(self, services: Sequence[Service]) -> list[str]:
        """Has nginx forward to these services, from its next reload on. Returns its arguments."""
        addresses = [f"127.0.0.1:{service.port} max_fails=0" for service in services]
        return configure_nginx(self.folder, self.ports, addresses, self.certificate)

    def reload(self) -> None:
        """Has nginx read its configuration, and waits until none of its workers has the one before."""
        assert self.nginx
        before = set(_children(self.nginx.pid))
        self.nginx.send_signal(signal.SIGHUP)
        wait_for(lambda: len(_children(self.nginx.pid)) and not before & set(_children(self.nginx.pid)))  # type: ignore[union-attr]  # it runs

    def replace(self) -> None:
        """Ends the first service, now that another one runs."""
        old = self.services.pop(0)
        old.stop()
        assert old.process.returncode == 0, old.log.read_text()[-2000:]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def roll(world: World) -> None:
    """SIGHUP: workers are replaced one after the other."""
    (service,) = world.services
    before = set(service.workers())
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(service.workers()) == WORKERS and not before & set(service.workers()), 60)


def move(world: World) -> None:
    """Another service is started, nginx is told, and the first one ends."""
    world.services.append(world.start())
    world.lead_to(world.services[1:])
    world.reload()
    world.replace()


def end_one_of_two(world: World) -> None:
    """nginx forwards to two services, one of which ends without a word to nginx."""
    world.services.append(world.start())
    world.lead_to(world.services)
    world.reload()
    time.sleep(1)
    world.replace()
    time.sleep(1)
    world.lead_to(world.services)
    world.reload()


# By what is printed: what is done, and whether nginx is asked or the service itself.
CASES: dict[str, tuple[Callable[[World], None], bool]] = {
    "SIGHUP, without a proxy": (roll, False),
    "SIGHUP, behind nginx": (roll, True),
    "another service, nginx reloaded, SIGTERM": (move, True),
    "SIGTERM to one of two behind nginx": (end_one_of_two, True),
}


@contextmanager
def running(folder: Path) -> Iterator[World]:
    program = find_program("nginx")
    if program is None:
        sys.exit("There is no nginx; on Debian it is the package nginx")
    made = folder / "nginx"
    made.mkdir()
    ports = Ports(find_free_port(), find_free_port())
    settings = {
        "PUBLIC_URL": f"https://{HOST}:{ports.https}",
        "ALLOWED_HOSTS": f"{HOST},127.0.0.1",
        "TRUSTED_PROXIES": "1",
    }
    cluster = Cluster(get_accessible_folder(folder / "server"))
    with temporary_copy("service") as copy, cluster.supervised():

        def start() -> Service:
            service = Service(copy, cluster.url, folder / "log", WORKERS, **settings)
            printed.update(service.start())
            return service

        printed: dict[str, str] = {}
        first = start()
        world = World(start, made, ports, make_certificate(folder), printed["API key"], [first])
        command = [program, *world.lead_to(world.services)]
        try:
            with run_proxy(command, ports.https) as world.nginx:
                yield world
        finally:
            for service in world.services:
                service.stop()


def run(rate: float, folder: Path) -> bool:
    """Runs the cases, prints what came of each, and returns whether no request failed."""
    print("| Replacement | Took s | Requests | Failed | Sent again | p50 ms | p99 ms | longest ms |")
    print("|---" * 8 + "|", flush=True)
    failed: list[str] = []
    with running(folder) as world, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for name, (replace, is_behind_nginx) in CASES.items():
            stop = folder / f"stop-{len(failed)}-{time.time_ns()}"
            plan = _plan(world, rate, is_behind_nginx, stop)
            load = pool.submit(offer, plan)
            time.sleep(SECONDS_AROUND)
            start = time.monotonic()
            replace(world)
            took = time.monotonic() - start
            time.sleep(SECONDS_AROUND)
            stop.touch()
            offered = load.result()
            print(_line(name, took, offered), flush=True)
            failed += [f"{name}: {_describe(offered)}"] if count_failed(offered) else []
    print("\n".join(["Broken:", *failed] if failed else ["No request failed"]), flush=True)
    return not failed


def _plan(world: World, rate: float, is_behind_nginx: bool, stop: Path) -> Plan:
    """Two reads and a payment, which is sent under its key again where its connection was closed."""
    port = world.ports.https if is_behind_nginx else world.services[0].port
    headers = {"X-API-Key": world.key, "Host": f"{HOST}:{port}"}
    payment = {**headers, "Content-Type": "application/json", "Idempotency-Key": KEY.decode()}
    requests = [
        wire(port, "GET", "/api/v2/users?limit=5", headers),
        wire(port, "POST", "/api/v2/payments", payment, b'{"amount": "1.00"}'),
        wire(port, "GET", "/api/v2/users/1", headers),
    ]
    authority = str(world.certificate.certificate) if is_behind_nginx else ""
    return Plan(port, requests, rate, MAX_SECONDS_OF_A_CASE, CONNECTIONS, authority, stop=str(stop))


def count_failed(offered: Offered) -> int:
    return sum(outcome.status not in {200, 201} for outcome in offered.outcomes)


def _describe(offered: Offered) -> dict[int, int]:
    return dict(Counter(outcome.status for outcome in offered.outcomes))


def _line(name: str, took: float, offered: Offered) -> str:
    times = sorted(outcome.seconds for outcome in offered.outcomes)
    cells = [name, f"{took:.1f}", f"{len(times):,}", str(count_failed(offered))]
    cells += [str(sum(outcome.resent for outcome in offered.outcomes))]
    cells += [f"{milliseconds(times, part):.0f}" for part in (0.5, 0.99, 1.0)]
    return f"| {' | '.join(cells)} |"
