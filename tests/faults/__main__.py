"""Kills the service, its database, and who is told of events while clients create things, and counts what went wrong.

`make faults KILLS=1000`, or `python -m tests.faults 1000`. Ctrl-C ends the kills; what happened until then is told.
"""

import sys

from tests.faults.trial import run
from tests.trials import tell

if __name__ == "__main__":
    tell(lambda folder, enough: run(int(sys.argv[1]), folder, enough))
