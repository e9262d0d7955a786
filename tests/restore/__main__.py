"""Loses a database under load, restores it to a moment, and compares every row.

`make restore-drill USERS=1000000`, or `python -m tests.restore 1000000`.
"""

import sys

from tests.restore.drill import run
from tests.service import open_folder

if __name__ == "__main__":
    with open_folder() as folder:
        sys.exit(not run(int(sys.argv[1]), folder))
