"""A run of the load: the cases, then whether anything is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from tests.faults.clients import Client
from tests.faults.report import compare, last_ids
from tests.faults.service import manage
from tests.load.cases import Found
from tests.load.measuring import Meter, Row
from tests.load.overload import overload
from tests.load.report import table
from tests.load.slow_clients import slow_clients
from tests.load.world import Target, World, running
from tests.trials import at_work, describe

# One who pays beside all else, so that it can be told whether anything is lost.
SECONDS_BETWEEN_PAYMENTS = 0.05


def run(names: Sequence[str], folder: Path) -> bool:
    """Runs the cases, prints what was found, and returns whether every bound holds."""
    start = time.monotonic()
    ledger = folder / "ledger"
    ledger.mkdir()
    with running(folder / "log", names) as world:
        target = world.target
        print(f"The service runs and is filled after {time.monotonic() - start:.0f} s", flush=True)
        before = last_ids(target.database)
        alone = {}
        with _paying(1, target, ledger):
            rows = _measure(world, [name for name in names if name not in ALONE])
        with _paying(2, target, ledger):
            alone |= {name: ALONE[name](world) for name in names if name in ALONE}
        report = compare(ledger, target.database, before)
        counts = manage(world.service.copy, target.database, "recount", "--check")
    broken = [f"{row.case}: {text}" for row in rows for text in row.broken()]
    broken += [f"{name}: {text}" for name, found in alone.items() for text in found.broken]
    # The cases create rows, too, which the client did not ask for.
    faults = {name: found for name, found in report.faults.items() if name != "phantom"}
    broken += [f"{name}: {found[:5]}" for name, found in faults.items() if found]
    print(f"\n{table(rows, alone)}\n")
    print(
        f"{report.created} things created meanwhile: {describe({name: len(found) for name, found in faults.items()})}"
    )
    print(f"recount --check: {counts}")
    print("\n".join(["Broken:", *broken] if broken else ["Every bound holds"]), flush=True)
    return not broken


@contextmanager
def _paying(index: int, target: Target, ledger: Path) -> Iterator[None]:
    """Somebody pays, and notes it in a file of the ledger."""
    with at_work([Client(index, target.port, target.administrator.key, ledger, [], pause=SECONDS_BETWEEN_PAYMENTS)]):
        yield


def _measure(world: World, names: Sequence[str]) -> list[Row]:
    meter, rows = Meter(world.target), []
    for name in names:
        rows.append(meter.measure(name, world.service.process.pid, _postmaster(world.target.database)))
        print(f"{name}: {'; '.join([*rows[-1].found.notes, *rows[-1].broken()])}", flush=True)
    return rows


def _postmaster(database: str) -> int:
    with psycopg.connect(database) as connection:
        # The process of a connection is a child of the postmaster.
        return psutil.Process(connection.info.backend_pid).ppid()


# What is measured without the readers.
ALONE: dict[str, Callable[[World], Found]] = {
    "slow_clients": slow_clients,
    "overload": overload,
}
