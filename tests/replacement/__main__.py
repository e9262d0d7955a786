"""Replaces the service in every way of docs/upgrade.md under a steady load, and counts what fails.

`make test-replacement RATE=500`, or `python -m tests.replacement 500`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.replacement.trial import run

if __name__ == "__main__":
    with TemporaryDirectory() as name:
        # The account that root's database runs as passes through it.
        Path(name).chmod(0o711)
        sys.exit(not run(float(sys.argv[1]), Path(name)))
