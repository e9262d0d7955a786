"""What becomes of a running release when the schema of a later one comes: of an artificial one (second_release.py).

`make test-migrations USERS=1000000`, or `python -m tests.releases migrations 1000000`: its migrations under traffic.
`make test-releases`, or `python -m tests.releases beside`: both releases at once, on the schema of the later one.
"""

import sys

from tests.releases import beside, migrations
from tests.service import open_folder

if __name__ == "__main__":
    with open_folder() as folder:
        match sys.argv[1:]:
            case ["migrations", users]:
                sys.exit(not migrations.run(int(users), folder))
            case ["beside"]:
                sys.exit(not beside.run(folder))
            case _:
                sys.exit(__doc__)
