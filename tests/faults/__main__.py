"""Kills the service, its database, and who is told of events while clients create things, and counts what went wrong.

`make faults KILLS=1000`, or `python -m tests.faults 1000`. Ctrl-C ends the kills; what happened until then is told.
"""

import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.trial import run

if __name__ == "__main__":
    enough = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: enough.set())
    with TemporaryDirectory() as folder:
        outcome = run(int(sys.argv[1]), Path(folder), enough)
        print("\n".join(outcome.lines()))
        sys.exit(not (outcome.right and outcome.quick))
