"""What a process does after a fork: it ends with its parent, keeps nothing of it, and takes its turn on a processor."""

import ctypes
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path


def end_with_parent(parent: int) -> None:
    """Has the kernel kill this process when `parent`, which forked it, dies.

    SIGTERM is not enough: a worker that is just starting may hang in Granian's handler of it, and nobody is left who
    would kill it after a while.

    Raises:
        SystemExit: the parent has died already, between the fork and this call, and the kernel would never tell.
    """
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def close_other_files(needed: Collection[int]) -> None:
    """Closes all files of this process but those that are needed, and standard input, output and error."""
    folder = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")
    for number in sorted(int(path.name) for path in folder.iterdir()):
        if number > 2 and number not in needed:
            with suppress(OSError):
                os.close(number)


def keep_to_processor(index: int, workers: int) -> None:
    """Keeps a worker to one processor, where there is a worker for each.

    Its threads take turns with the interpreter's lock: on two processors they wait for each other there, and find the
    caches filled by others. With fewer workers, the kernel knows better which processor is free. So it does for what a
    worker has forked before, the slow lane.

    Args:
        index: of the worker.
        workers: how many there are.
    """
    if sys.platform == "linux":
        processors = sorted(os.sched_getaffinity(0))
        if workers == len(processors):
            os.sched_setaffinity(0, {processors[index]})


def wake_without_preemption() -> None:
    """Has threads of this process that wake wait for the processor, as those of batch jobs do (sched(7), SCHED_BATCH).

    A thread of Granian's would take it from the one that has the interpreter's lock, only to wait for that lock.
    """
    if sys.platform == "linux":
        # A sandbox may refuse it. Then there are more switches.
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
