"""A run of the faults: clients that pay through all of the installation, and one fault after the other."""

from __future__ import annotations

import itertools
import random
import signal
import ssl
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple

from tests.cluster.installation import FOLDER, NODES, Installation, running
from tests.cluster.machines import PATIENCE, Machine
from tests.faults.clients import TIMEOUT, Client
from tests.faults.logs import read_log
from tests.faults.report import Report, compare, last_ids
from tests.faults.trial import let_work
from tests.service import wait_for
from tests.system.proxies import HOST
from tests.trials import at_work, describe, list_faults

CLIENTS = 8
SECONDS_BETWEEN_WRITES = 0.05
SECONDS_BETWEEN_READS = 0.02
EFFECTS_BETWEEN_FAULTS = 50
# For how long etcd has no majority.
SECONDS_WITHOUT_MAJORITY = 12.0
# How late a replica is, longer than settings.REPLICA_MAX_LAG.
SECONDS_OF_DELAY = 5.0
# Longer than wal_sender_timeout of deploy/cluster/patroni.yml.
SECONDS_OF_A_SILENT_STANDBY = 8.0
# For how long a reader may have no rows, whatever the fault is.
MOST_SECONDS_WITHOUT_READ = 2.0


class Fault(NamedTuple):
    """What is done, and how many seconds there may be without a write because of it."""

    strike: Callable[[Installation], None]
    most_seconds: float


class Strike(NamedTuple):
    """A fault, from when it was made to when everything was whole again, by the clock of `time.monotonic`."""

    kind: str
    at: float
    whole: float


@dataclass
class Outcome:
    strikes: list[Strike]
    report: Report
    answered: list[float]
    read: list[float]
    payments: int
    seconds: float
    evidence: list[str] = field(default_factory=list)

    @property
    def passes(self) -> bool:
        """On a machine that has nothing else to do, it is also quick."""
        return not any(self.report.faults.values()) and all(
            longest_gap(self.answered, one) <= FAULTS[one.kind].most_seconds
            and longest_gap(self.read, one) <= MOST_SECONDS_WITHOUT_READ
            for one in self.strikes
        )

    def lines(self) -> Iterator[str]:
        yield (
            "| Fault | Times | Seconds without a write, median | worst | allowed | without a read, median | worst"
            " | allowed |"
        )
        yield "|---" * 8 + "|"
        for kind in FAULTS:
            if strikes := [strike for strike in self.strikes if strike.kind == kind]:
                yield self._row(kind, strikes)
        yield (
            f"{len(self.strikes)} faults in {self.seconds / 60:.1f} min; {self.report.requests} requests,"
            f" {self.report.created} things created, {self.payments} of them payments;"
            f" {describe(self.report.statuses)}"
        )
        yield from list_faults(self.report.faults)
        yield from (f"  {line}" for line in self.evidence)

    def _row(self, kind: str, strikes: list[Strike]) -> str:
        gaps = [longest_gap(self.answered, strike) for strike in strikes]
        gaps_of_reads = [longest_gap(self.read, strike) for strike in strikes]
        seconds = [statistics.median(gaps), max(gaps), FAULTS[kind].most_seconds]
        seconds += [statistics.median(gaps_of_reads), max(gaps_of_reads), MOST_SECONDS_WITHOUT_READ]
        cells = [kind, str(len(strikes)), *(f"{figure:.1f}" for figure in seconds)]
        return f"| {' | '.join(cells)} |"


class Reader(threading.Thread):
    """Reads rows, one row and a list in turn; `answered` are the times of the answers that had them."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(daemon=True)
        self.answered: list[float] = []
        self.stopping = threading.Event()
        self._headers = {"X-API-Key": installation.started["API key"]}
        context = ssl.create_default_context(cafile=installation.certificate.certificate)
        self._connection = HTTPSConnection(HOST, installation.port, timeout=TIMEOUT, context=context)

    def run(self) -> None:
        for path in itertools.cycle(("/api/v2/users/1", "/api/v2/orders?limit=5")):
            if self.stopping.wait(SECONDS_BETWEEN_READS):
                break
            try:
                self._connection.request("GET", path, headers=self._headers)
                response = self._connection.getresponse()
                response.read()
            except (OSError, HTTPException):
                self._connection.close()
            else:
                if response.status == 200:
                    self.answered.append(time.monotonic())
        self._connection.close()


def longest_gap(answered: list[float], strike: Strike) -> float:
    """The longest time without an answer, from a fault to the end of it; `answered` are the times of all."""
    times = [strike.at, *sorted(at for at in answered if strike.at < at < strike.whole), strike.whole]
    return max(end - start for start, end in itertools.pairwise(times))


def run(faults: int, payments: int, folder: Path, enough: threading.Event) -> Outcome:
    """Makes so many faults while clients pay, or until it is enough, and lets them pay so often.

    Args:
        faults: how many; of each kind one, if that is enough.
        payments: how many are made at least.
        folder: gets the ledger.
        enough: ends the faults.
    """
    ledger = folder / "ledger"
    ledger.mkdir()
    with running() as installation:
        before = last_ids(installation.database)
        answered: list[float] = []
        clients = [
            Client(
                index,
                installation.port,
                installation.started["API key"],
                ledger,
                answered,
                pause=SECONDS_BETWEEN_WRITES,
                authority=installation.certificate.certificate,
            )
            for index in range(CLIENTS)
        ]
        reader = Reader(installation)
        with at_work([*clients, reader]):
            start = time.monotonic()
            strikes = list(_strike(faults, installation, answered, enough))
            while not enough.is_set() and _count_payments(clients) < payments:
                enough.wait(0.1)
            seconds = time.monotonic() - start
        report = compare(ledger, installation.database, before)
        return Outcome(
            strikes,
            report,
            answered,
            reader.answered,
            _count_payments(clients),
            seconds,
            [*_find_evidence(report)],
        )


def _find_evidence(report: Report) -> Iterator[str]:
    """What the nodes have logged of answers that nobody should get: their logs end with the installation."""
    unexpected = {answer.get("request_id") for answer in report.unexpected}
    for address in NODES:
        for line in read_log(FOLDER / f"{address}.log"):
            if line.get("request_id") in unexpected:
                yield f"{address} {line}"


def _count_payments(clients: list[Client]) -> int:
    return sum(intent.kind == "payments" for client in clients for intent in [*client.done])


def _strike(
    number: int, installation: Installation, answered: list[float], enough: threading.Event
) -> Iterator[Strike]:
    kinds = [*FAULTS]
    if not installation.network.namespaces:
        kinds = [kind for kind in kinds if kind not in CUTS]
        print(f"Left out without network namespaces: {', '.join(CUTS)}", flush=True)
    # Each kind as often as the others, in any order.
    rounds = (random.sample(kinds, len(kinds)) for _ in itertools.count())
    for kind in itertools.islice(itertools.chain.from_iterable(rounds), number):
        if enough.is_set():
            return
        let_work(answered, EFFECTS_BETWEEN_FAULTS)
        at = time.monotonic()
        FAULTS[kind].strike(installation)
        wait_for(installation.machines.is_whole, PATIENCE)
        let_work(answered, EFFECTS_BETWEEN_FAULTS)
        strike = Strike(kind, at, time.monotonic())
        print(f"{kind}: {longest_gap(answered, strike):.1f} s", flush=True)
        yield strike


def kill_primary(installation: Installation) -> None:
    """Patroni and PostgreSQL; Patroni is started again."""
    _primary(installation).signal(signal.SIGKILL)


def lose_primary(installation: Installation) -> None:
    """The whole machine, which comes back when another one has taken its place."""
    machine = _primary(installation)
    machine.patroni.is_wanted = machine.etcd.is_wanted = False
    machine.signal(signal.SIGKILL)
    machine.etcd.stop(signal.SIGKILL)
    _wait_for_another_primary(installation, machine)
    machine.etcd.start()
    machine.patroni.start()


def freeze_primary(installation: Installation) -> None:
    """The whole machine, which goes on where it was when another one has taken its place."""
    machine = _primary(installation)
    machine.signal(signal.SIGSTOP)
    machine.etcd.signal(signal.SIGSTOP)
    _wait_for_another_primary(installation, machine)
    machine.signal(signal.SIGCONT)
    machine.etcd.signal(signal.SIGCONT)


def cut_off_primary(installation: Installation) -> None:
    """The whole machine, which goes on by itself and is joined again when another one has taken its place."""
    machine = _primary(installation)
    installation.network.cut_off(machine.address)
    _wait_for_another_primary(installation, machine)
    installation.network.join(machine.address)


def switch_over(installation: Installation) -> None:
    machine = _primary(installation)

    def is_done() -> bool:
        primary = installation.machines.primary()
        if primary is machine:
            # Refused while Patroni finds no standby good enough, as just behind another fault.
            machine.ask("POST", "/switchover", {"leader": machine.name})
        return primary not in {None, machine}

    wait_for(is_done, PATIENCE)


def kill_standby(installation: Installation) -> None:
    installation.machines.standby().signal(signal.SIGKILL)


def freeze_standby(installation: Installation) -> None:
    machine = installation.machines.standby()
    machine.signal(signal.SIGSTOP)
    time.sleep(SECONDS_OF_A_SILENT_STANDBY)
    machine.signal(signal.SIGCONT)


def cut_off_standby(installation: Installation) -> None:
    machine = installation.machines.standby()
    installation.network.cut_off(machine.address)
    time.sleep(SECONDS_OF_A_SILENT_STANDBY)
    installation.network.join(machine.address)


def take_majority(installation: Installation) -> None:
    """Two of three members of etcd, for a while."""
    lost = installation.machines.all[1:]
    for machine in lost:
        machine.etcd.stop(signal.SIGKILL)
    time.sleep(SECONDS_WITHOUT_MAJORITY)
    for machine in lost:
        machine.etcd.start()


def kill_node(installation: Installation) -> None:
    node = random.choice(installation.nodes)
    node.kill()
    node.start()


def _restart(name: str) -> Callable[[Installation], None]:
    def restart(installation: Installation) -> None:
        installation.programs[name].stop(signal.SIGKILL)
        installation.programs[name].start()

    return restart


def _primary(installation: Installation) -> Machine:
    primary = installation.machines.primary()
    assert primary
    return primary


def _wait_for_another_primary(installation: Installation, machine: Machine) -> None:
    wait_for(lambda: installation.machines.primary() not in {None, machine}, PATIENCE)


def delay_replica(installation: Installation) -> None:
    """The standby that COMMIT does not wait for."""
    machine = installation.machines.replica()
    installation.set_on(machine, f"SET recovery_min_apply_delay = '{SECONDS_OF_DELAY:.0f}s'")
    time.sleep(2 * SECONDS_OF_DELAY)
    installation.set_on(machine, "RESET recovery_min_apply_delay")


# For machines with a network namespace of their own.
CUTS = {
    "primary's machine cut off": Fault(cut_off_primary, 30.0),
    "synchronous standby cut off": Fault(cut_off_standby, 10.0),
}
# By what is printed.
FAULTS = {
    "primary killed": Fault(kill_primary, 10.0),
    "primary's machine lost": Fault(lose_primary, 30.0),
    "primary's machine frozen": Fault(freeze_primary, 30.0),
    "switchover": Fault(switch_over, 5.0),
    "synchronous standby killed": Fault(kill_standby, 5.0),
    "synchronous standby frozen": Fault(freeze_standby, 10.0),
    "replica delayed": Fault(delay_replica, 2.0),
    "etcd without its majority": Fault(take_majority, 2.0),
    "HAProxy killed": Fault(_restart("HAProxy"), 5.0),
    "PgBouncer killed": Fault(_restart("PgBouncer"), 2.0),
    "Redis killed": Fault(_restart("Redis"), 2.0),
    "node killed": Fault(kill_node, 2.0),
    **CUTS,
}
