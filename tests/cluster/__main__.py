"""The service on a PostgreSQL cluster, all of it on this machine.

`make cluster`, or `python -m tests.cluster run`: runs it until Ctrl-C.
`make test-cluster FAULTS=50 PAYMENTS=10000`, or `python -m tests.cluster faults 50 10000`: kills, freezes and cuts off
members while clients pay, and counts what went wrong. Ctrl-C ends the faults; what happened until then is told.
"""

import signal
import sys
from typing import Never

from tests.cluster.installation import running
from tests.cluster.trial import run
from tests.trials import tell


def end(number: int, frame: object) -> Never:
    """Once: what is stopped meanwhile must not be left behind by a second signal."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    try:
        match sys.argv[1:]:
            case ["run"]:
                with running() as installation:
                    print("\n".join(installation.lines()), flush=True)
                    signal.pause()
            case ["faults", faults, payments]:
                tell(lambda folder, enough: run(int(faults), int(payments), folder, enough))
            case _:
                sys.exit(__doc__)
    except KeyboardInterrupt:
        sys.exit(130)
