"""Replaces the service in every way of docs/upgrade.md under a steady load, and counts what fails.

`make test-replacement RATE=500`, or `python -m tests.replacement 500`.
"""

import sys

from tests.replacement.trial import run
from tests.service import open_folder

if __name__ == "__main__":
    with open_folder() as folder:
        sys.exit(not run(float(sys.argv[1]), folder))
