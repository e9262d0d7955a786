"""Reads from replicas while they fall behind and are killed, and compares every answer with what was seen and written.

`make test-replicas REQUESTS=1000000`, or `python -m tests.replicas 1000000`; FAST_PATH=false for the reference.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.replicas.trial import run

if __name__ == "__main__":
    with TemporaryDirectory() as name:
        # The account that root's database runs as passes through it.
        Path(name).chmod(0o711)
        outcome = run(int(sys.argv[1]), Path(name))
        print("\n".join(outcome.lines()))
        sys.exit(not outcome.right)
