"""Loses a database under load, restores it to a moment, and compares every row.

`make restore-drill USERS=1000000`, or `python -m tests.restore 1000000`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.restore.drill import run

if __name__ == "__main__":
    with TemporaryDirectory() as name:
        # The account that root's database runs as passes through it.
        Path(name).chmod(0o711)
        sys.exit(not run(int(sys.argv[1]), Path(name)))
