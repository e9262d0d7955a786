"""What becomes of a running release when the schema of this one comes.

`make test-migrations USERS=1000000`, or `python -m tests.releases migrations 1000000`: every migration under traffic.
`make test-releases`, or `python -m tests.releases beside`: the release before this one on the schema of this one.
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
            case ["migrations", users, *commit]:
                sys.exit(not migrations.run(int(users), Path(name), *commit))
            case ["beside", *commit]:
                sys.exit(not beside.run(Path(name), *commit))
            case _:
                sys.exit(__doc__)
