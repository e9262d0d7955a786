"""Mixed traffic for an hour, with faults and a bad network to the database, and then what came of it.

`make soak MINUTES=60`, or `python -m tests.soak 60`. Ctrl-C ends it early; what happened until then is told.
"""

import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.trial import run

if __name__ == "__main__":
    enough = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: enough.set())
    with TemporaryDirectory() as folder:
        outcome = run(float(sys.argv[1]), Path(folder), enough)
        print("\n".join(outcome.lines()))
        sys.exit(not outcome.right)
