"""What the trials share: how they are started, clients at work beside them, and how they tell what was found."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Never

from tests.service import open_folder


def tell(run: Callable[[Path, threading.Event], Any]) -> Never:
    """Runs a trial in a folder of its own, prints the lines of what came of it, and ends this process.

    Args:
        run: gets the folder, and an event that Ctrl-C sets: what happened until then is told.
    """
    enough = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: enough.set())
    with open_folder() as folder:
        outcome = run(folder, enough)
    print("\n".join(outcome.lines()))
    sys.exit(not outcome.passes)


@contextmanager
def at_work(workers: Iterable[Any]) -> Iterator[None]:
    """Has threads work during the block, and waits until each has ended what it had begun."""
    workers = [*workers]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            worker.join()


def describe(counts: Mapping[object, int]) -> str:
    """Counts by name, as text."""
    return ", ".join(f"{name} × {count:,}" for name, count in sorted(counts.items(), key=str))


def list_faults(faults: Mapping[str, Collection[object]]) -> Iterator[str]:
    """How many there are of each kind, then some of each."""
    yield ", ".join(f"{name} {len(found)}" for name, found in faults.items())
    for name, found in faults.items():
        yield from (f"  {name}: {one}" for one in [*found][:5])
