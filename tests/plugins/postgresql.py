"""A PostgreSQL for the tests alone, and the environment of production.

As a plugin of pytest, loaded by `-p tests.plugins.postgresql`, it comes before the settings are read. As a command it
runs another one in the same environment: `python -m tests.plugins.postgresql manage.py check --deploy`.

Each worker of pytest-xdist has a server of its own: the feed of events waits for the oldest transaction of the whole
server, which may be the one around all tests of a module.
"""

import atexit
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from config.local.account import get_accessible_folder
from config.local.cluster import NON_DURABLE_SETTINGS, Cluster
from tests.plugins.pgbouncer import pooled

# Where the servers of a run are, of which whoever has made the folder leaves none.
FOLDER = "POSTGRESQL_OF_TESTS"
_running = ExitStack()
atexit.register(_running.close)


def start() -> None:
    """Gives the environment a database: of a non-durable server that ends with this process, or of CITUS_URL."""
    if citus := os.environ.get("CITUS_URL"):
        os.environ |= {"DATABASE_URL": citus, "FAST_PATH": "false"}
    else:
        _start_server()
    os.environ |= {
        "LOCAL": "false",
        "SECRET_KEY": secrets.token_urlsafe(48),
        "JWT_SIGNING_KEY": secrets.token_urlsafe(48),
        "ALLOWED_HOSTS": "api.example.com,testserver,localhost,127.0.0.1",
        "PUBLIC_URL": "https://api.example.com",
        # Nobody listens there: Django keeps the mail of tests.
        "EMAIL_URL": "smtp://127.0.0.1:1",
        # High enough for any test, and counted all the same.
        "RATE_LIMIT_PRINCIPAL": "1000000",
        "RATE_LIMIT_ANONYMOUS": "1000000",
    }


def _start_server() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
        # Root's server runs as another account, which must get through to its own folder in here.
        folder.chmod(0o711)
        os.environ[FOLDER] = str(folder)
        _running.callback(_clear, folder)
    cluster = Cluster(get_accessible_folder(Path(os.environ[FOLDER]) / (worker or "server")), NON_DURABLE_SETTINGS)
    _running.callback(shutil.rmtree, cluster.folder, ignore_errors=True)
    _running.callback(shutil.rmtree, cluster.sockets, ignore_errors=True)
    _running.enter_context(cluster.running())
    # Where the suite is to run through a pooler.
    if pgbouncer := os.environ.get("PGBOUNCER"):
        os.environ |= {
            "DATABASE_URL": _running.enter_context(pooled(cluster, pgbouncer)),
            "DATABASE_MIGRATION_URL": cluster.url,
        }
    else:
        os.environ["DATABASE_URL"] = cluster.url


def _clear(folder: Path) -> None:
    """Stops what workers have left that were killed."""
    for process in folder.glob("*/data/postmaster.pid"):
        with Cluster(process.parents[1]).running():
            pass
    shutil.rmtree(folder, ignore_errors=True)


def pytest_unconfigure() -> None:
    """A worker of pytest-xdist ends without what `atexit` has."""
    _running.close()


if "PYTEST_XDIST_WORKER" not in os.environ:
    # Python's answer to Ctrl-C, so that the server is also stopped when the tests are.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
start()

if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
