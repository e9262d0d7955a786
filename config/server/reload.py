"""Replaces the service without downtime: new code and new settings, the same process id.

On SIGHUP, the process that starts the workers executes its program again (execve). Its workers remain its children and
continue to run. The environment passes on the listening sockets, so that no connection is lost with the worker that
would have accepted it; the workers; and the folder of the metrics. When the new workers run, the old ones finish their
requests.
"""

import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from config.server.systemd import notify

logger = logging.getLogger(__name__)

_VARIABLE = "SERVE_PREDECESSOR"
_REFUSED = "READY=1\nSTATUS=The last reload failed: the previous code and settings stay in use. The log says why."
# The signals that end the service.
ENDING = (signal.SIGINT, signal.SIGTERM)
# To load the code and to look at the settings.
SECONDS_TO_TRY = 60


class Predecessor(NamedTuple):
    """The state that a predecessor hands over.

    Attributes:
        sockets: the file descriptors that listen, one for each worker.
        workers: the process ids of the workers that have not ended yet.
        metrics: the folder of the metrics.
    """

    sockets: Sequence[int]
    workers: list[int]
    metrics: str

    def retire(self, seconds: float) -> None:
        """Lets the workers end what they have begun, one after the other, and ends those that take longer.

        Args:
            seconds: that each of them has.
        """
        while self.workers:
            pid = self.workers[0]
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGTERM)
                deadline = time.monotonic() + seconds
                while not os.waitpid(pid, os.WNOHANG)[0]:
                    if time.monotonic() > deadline:
                        logger.warning("A worker did not stop within %s s: killing it.", seconds)
                        os.kill(pid, signal.SIGKILL)
                        # Once: it is gone when the kernel has freed its memory.
                        deadline = math.inf
                    time.sleep(0.02)
            # From now on its process id may be another one's.
            with suppress(ValueError):
                self.workers.remove(pid)


def get_predecessor() -> Predecessor | None:
    """The predecessor that this service replaces; None if there is none."""
    handed_over = os.environ.pop(_VARIABLE, None)
    # Until the workers run, another SIGHUP would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return Predecessor(**json.loads(handed_over)) if handed_over else None


def reload(present: Predecessor, environment: Mapping[str, str], is_ending: Callable[[], bool]) -> None:
    """Executes the program again. Returns if it would not start, or has to end: then everything stays as it is.

    Args:
        present: what it takes the place of.
        environment: in which it runs.
        is_ending: whether a signal to end came meanwhile.
    """
    command = [sys.executable, *sys.orig_argv[1:]]
    notify("RELOADING=1")
    # With the new code and settings, in a process that may fail.
    trial = [sys.executable, sys.argv[0], "check", "--fail-level", "ERROR"]
    try:
        subprocess.run(  # noqa: S603 - what runs already
            trial, capture_output=True, text=True, timeout=SECONDS_TO_TRY, check=True, env=environment
        )
    except subprocess.SubprocessError as error:
        # Of a time-out, what the trial said is bytes.
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        logger.error("The reload failed, because the service would not start: %s", said.strip()[-2000:])  # noqa: TRY400
        notify(_REFUSED)
        return
    # Until the new program knows what it was handed over: it would leave the workers without an end.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    if is_ending():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return
    for file in present.sockets:
        os.set_inheritable(file, True)
    handed_over = {_VARIABLE: json.dumps(present._asdict())}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execve(sys.executable, command, {**environment, **handed_over})  # noqa: S606 - what runs already
