"""What a process does after a fork: it ends with its parent, drops its state, and shares the processors."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from itertools import pairwise

_libc = ctypes.CDLL(None)
# Numbers of mallopt(3), and the size from which on a block is returned to the system.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BLOCK = 128 * 1024


def end_with_parent(parent: int) -> None:
    """Makes the kernel kill this process when `parent`, which forked it, dies.

    SIGTERM is not enough: a worker that is just starting may hang in Granian's handler of it, and nobody is left who
    would kill it after a while.

    Raises:
        SystemExit: the parent has died already, between the fork and this call, and the kernel would never tell.
    """
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        _libc.prctl(parent_death_signal, signal.SIGKILL)
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


def wake_without_preemption() -> None:
    """Makes waking threads of this process wait for the processor, as batch jobs do (sched(7), SCHED_BATCH).

    A thread of Granian's would take the processor from the one that has the interpreter's lock, only to wait for that
    lock: a write costs up to a third more.
    """
    if sys.platform == "linux":
        # A sandbox may refuse it.
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def return_memory() -> None:
    """Makes the C library return large blocks, such as those of exports, when they are freed.

    glibc would keep blocks of up to 32 MB once it has seen such, and heaps for each thread: with four exports at once,
    the process took 171 MB instead of 94 after five minutes, and kept growing. Other C libraries have no `mallopt`, or
    none of these.
    """
    if mallopt := getattr(_libc, "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_ARENA_MAX, 1)
