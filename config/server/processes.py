"""What a process does after a fork: it ends with its parent and keeps nothing of it."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Collection
from itertools import pairwise


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
    kept = sorted({2, *needed})
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for below, above in pairwise([*kept, limit]):
        os.closerange(below + 1, above)


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
