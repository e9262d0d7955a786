"""What becomes of a running release when the schema of a later one comes: of an artificial one (second_release.py).

`make test-migrations USERS=1000000`, or `python -m tests.releases migrations 1000000`: its migrations under traffic.
`make test-releases`, or `python -m tests.releases beside`: both releases at once, on the schema of the later one.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.releases import beside, migrations

if __name__ == "__main__":
    with TemporaryDirectory() as name:
        # The account that root's database runs as passes through it.
        Path(name).chmod(0o711)
        match sys.argv[1:]:
            case ["migrations", users]:
                sys.exit(not migrations.run(int(users), Path(name)))
            case ["beside"]:
                sys.exit(not beside.run(Path(name)))
            case _:
                sys.exit(__doc__)
