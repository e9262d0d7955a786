"""Kills the service and its database again and again while clients create things, and counts what went wrong.

`make faults KILLS=1000`, or `python -m tests.faults 1000`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.trial import run

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        outcome = run(int(sys.argv[1]), Path(folder), progress=True)
        print("\n".join(outcome.lines()))
        sys.exit(not (outcome.right and outcome.quick))
