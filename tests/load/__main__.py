"""Puts what is slow beside eight readers, one case after the other, and prints what the readers saw of it.

`make test-load`, or `python -m tests.load`; `CASES=logins,export` runs those alone.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.load.cases import CASES
from tests.load.trial import ALONE, run

if __name__ == "__main__":
    every = [*dict.fromkeys([*CASES, *ALONE])]
    names = [name for name in "".join(sys.argv[1:]).split(",") if name] or every
    if unknown := set(names) - set(every):
        sys.exit(f"There is no case {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    with TemporaryDirectory() as folder:
        sys.exit(not run(names, Path(folder)))
