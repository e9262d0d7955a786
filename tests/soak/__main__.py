"""Mixed traffic for an hour, with faults and a bad network to the database, and then what came of it.

`make soak MINUTES=60`, or `python -m tests.soak 60`. Ctrl-C ends it early; what happened until then is told.
"""

import sys

from tests.soak.trial import run
from tests.trials import tell

if __name__ == "__main__":
    tell(lambda folder, enough: run(float(sys.argv[1]), folder, enough))
