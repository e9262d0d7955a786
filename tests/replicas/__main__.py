"""Reads from replicas while they fall behind and are killed, and compares every answer with what was seen and written.

`make test-replicas REQUESTS=1000000`, or `python -m tests.replicas 1000000`; FAST_PATH=false for the reference.
"""

import sys

from tests.replicas.trial import run
from tests.trials import tell

if __name__ == "__main__":
    tell(lambda folder, enough: run(int(sys.argv[1]), folder))
