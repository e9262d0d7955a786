import ctypes
import gc
import logging
import os
import resource
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections, transaction
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from config.local.cluster import get_default_cluster
from config.management.command import ServiceCommand
from config.management.migrations import migrate, one_at_a_time
from config.server import metrics

ADMINISTRATOR = "admin@example.com"
SECONDS_TO_STOP = 20
# Of a worker, at once. A connection that only waits costs little, so there are many: further ones wait for a place.
CONNECTIONS = 4096
# What a worker opens beside connections of clients.
OTHER_FILES = 256
# For the headers of a request, and also between two requests of a connection.
SECONDS_FOR_HEADERS = 30


class Command(ServiceCommand):
    help = (
        "Sets up the database and serves the API in the foreground, until Ctrl-C or SIGTERM. Where and how it serves "
        "is said by variables of the environment, which docs/operations.md lists."
    )
    example = "HOST=127.0.0.1 PORT=8000 manage.py serve"

    def handle(self, **options: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        database = get_default_cluster().supervised() if settings.EMBEDDED_DATABASE else nullcontext()
        with _reserved(settings.HOST, settings.PORT), database:
            with one_at_a_time():
                migrate()
                if settings.LOCAL:
                    _fill()
            # A worker is a fork: it must find no connection that it would share with its siblings.
            connections.close_all()
            with TemporaryDirectory(prefix="metrics-") as folder:
                os.environ[metrics.FOLDER] = folder
                _serve()


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the start-up. A second signal must not interrupt the cleaning up after the first."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(0)


@contextmanager
def _reserved(host: str, port: int) -> Iterator[None]:
    """Holds the port, so that a second start ends at once.

    The workers share the port by SO_REUSEPORT, which would let a second service of the same account share it too. So
    the port is first taken for oneself alone, and opened to the workers only then.

    Raises CommandError when the port is taken or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as holder:
        try:
            with suppress(OSError):
                holder.bind((host, port))
            if not holder.getsockname()[1]:
                # Connections of a service stopped a moment ago may linger on the port; those are no obstacle.
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                holder.bind((host, port))
        except OSError as error:
            raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield


def _fill() -> None:
    """Gives a new database demo data, an administrator and an API key, and prints the latter two."""
    import accounts.services
    import users.services
    from config import audit
    from config.management.demo.load import load_demo_data
    from users.models import User

    with audit.rows_alone(), transaction.atomic():
        first = not User.objects.administrators().exists()
        if not User._base_manager.exists():
            load_demo_data()
        if first:
            password = secrets.token_urlsafe(15)
            user = users.services.create(name="Administrator", email=ADMINISTRATOR, role="admin", password=password)
            _, key = accounts.services.create_api_key(user, name="First key", scopes=None, expires_at=None)
    if first:
        print(f"Administrator: {ADMINISTRATOR}", f"Password: {password}", f"API key: {key}", sep="\n", flush=True)
    else:
        print("Another API key: .venv/bin/python manage.py create_api_key EMAIL", flush=True)


def _serve() -> None:
    # In the parent, for the forks to share; and so that a mistake in the code ends the start with its traceback.
    import config.server.rsgi
    import config.urls  # noqa: F401

    # A look for garbage writes to every object that it looks at, and so ends the sharing of its page. What is loaded
    # stays: no process shall look for garbage in it again.
    gc.collect()
    gc.freeze()
    server = _Server(
        "config.server.rsgi:application",
        address=settings.HOST,
        port=settings.PORT,
        interface=Interfaces.RSGI,
        workers=settings.WORKERS,
        # HTTP/2 is for the proxy: clients that vanish in it are noticed by no deadline of Granian's.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=SECONDS_FOR_HEADERS * 1000, max_buffer_size=64 * 1024),
        websockets=False,
        backpressure=_connections(),
        respawn_failed_workers=True,
        workers_kill_timeout=SECONDS_TO_STOP,
        log_access=False,
        log_level=LogLevels.error,
    )
    # Standard output is for the lines promised in docs/operations.md.
    for handler in logging.getLogger("_granian").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)
    threading.Thread(target=_announce, args=(server,), daemon=True).start()
    try:
        server.serve(target_loader=_load, wrap_loader=False)
    except SystemExit:
        # Granian also ends with 1 when it was asked to stop just after a worker died.
        if not server.interrupt_signal:
            raise


def _connections() -> int:
    """How many connections a worker may hold; the limit of open files, which workers inherit, is raised to fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OTHER_FILES
    if 0 <= soft < wanted:
        soft = wanted if hard < 0 else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft < 0 else max(1, min(CONNECTIONS, soft - OTHER_FILES))


class _Server(MPServer):
    def _respawn_workers(self, *arguments: Any, **options: Any) -> None:
        """Starts dead workers again however often they die; Granian ends the service when one dies twice in 5 s."""
        super()._respawn_workers(*arguments, **options)
        self.respawned_wrks.clear()
        time.sleep(0.2)


def _announce(server: MPServer) -> None:
    """Prints the address as soon as a worker listens, and not while there are workers to be forked."""
    while len(server.wrks) < settings.WORKERS:
        time.sleep(0.01)
    while True:
        with suppress(OSError), socket.create_connection((settings.HOST, settings.PORT), timeout=1):
            break
        time.sleep(0.01)
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    print(f"Address: http://{host}:{settings.PORT}", flush=True)


def _load() -> Any:
    """Runs in a worker: prepares the process, and returns the application."""
    # Until Granian sets its own handler, that of the parent would swallow the signal to stop.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C goes to all processes of a group. The parent alone shall hear it, and then stop its workers in order.
    os.setpgid(0, 0)
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2): no worker outlives the parent
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    metrics.share()
    from config.server.rsgi import application

    return application
