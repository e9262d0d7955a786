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
from config.management.migrations import migrate, setup_lock
from config.server import metrics

ADMINISTRATOR_EMAIL = "admin@example.com"
STOP_TIMEOUT_SECONDS = 20
# Of one worker. Idle connections cost little, so there may be many; further ones wait to be accepted.
MAX_CONNECTIONS = 4096
# File descriptors of a worker that are not connections of clients.
RESERVED_FILES = 256
# For the headers of a request, and also between two requests of a connection.
HEADER_TIMEOUT_SECONDS = 30


class Command(ServiceCommand):
    help = (
        "Sets up the database and serves the API in the foreground until Ctrl-C or SIGTERM. Environment variables "
        "configure the service; docs/operations.md lists them."
    )
    example = "HOST=127.0.0.1 PORT=8000 manage.py serve"

    def handle(self, **options: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _exit)
        database = get_default_cluster().supervised() if settings.EMBEDDED_DATABASE else nullcontext()
        with _reserve_port(settings.HOST, settings.PORT), database:
            with setup_lock():
                migrate()
                if settings.LOCAL:
                    _create_first_data()
            # A worker is a fork: it must find no connection that it would share with its siblings.
            connections.close_all()
            with TemporaryDirectory(prefix="metrics-") as folder:
                os.environ[metrics.FOLDER] = folder
                _serve()


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the start-up. A second signal must not interrupt the cleanup after the first."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(0)


@contextmanager
def _reserve_port(host: str, port: int) -> Iterator[None]:
    """Holds the port during the block, so that a second service fails immediately.

    The workers share the port by SO_REUSEPORT, by which a second service of the same account could share it, too. So
    the port is first bound exclusively, and SO_REUSEPORT is set afterwards.

    Raises:
        CommandError: the port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as reservation:
        try:
            with suppress(OSError):
                reservation.bind((host, port))
            if not reservation.getsockname()[1]:
                # The port may still have connections in TIME_WAIT, of a service that has just stopped.
                reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                reservation.bind((host, port))
        except OSError as error:
            raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield


def _create_first_data() -> None:
    """Creates demo data, an administrator and an API key in a new database, and prints the latter two."""
    import accounts.services
    import users.services
    from config import audit
    from config.management.demo.load import load_demo_data
    from users.models import User

    with audit.rows_alone(), transaction.atomic():
        is_new = not User.objects.administrators().exists()
        if not User._base_manager.exists():
            load_demo_data()
        if is_new:
            password = secrets.token_urlsafe(15)
            user = users.services.create(
                name="Administrator", email=ADMINISTRATOR_EMAIL, role="admin", password=password
            )
            _, key = accounts.services.create_api_key(user, name="First key", scopes=None, expires_at=None)
    if is_new:
        print(f"Administrator: {ADMINISTRATOR_EMAIL}", f"Password: {password}", f"API key: {key}", sep="\n", flush=True)
    else:
        print("Another API key: .venv/bin/python manage.py create_api_key EMAIL", flush=True)


def _serve() -> None:
    # Imported before the fork, so that workers share the memory, and an error ends the start with its traceback.
    import config.server.rsgi
    import config.urls  # noqa: F401

    # The garbage collector writes to each object that it visits, which would copy the shared memory pages. Frozen
    # objects are not visited again.
    gc.collect()
    gc.freeze()
    server = _Server(
        "config.server.rsgi:application",
        address=settings.HOST,
        port=settings.PORT,
        interface=Interfaces.RSGI,
        workers=settings.WORKERS,
        # HTTP/2 is left to the proxy: no timeout of Granian detects its dead connections.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_TIMEOUT_SECONDS * 1000, max_buffer_size=64 * 1024),
        websockets=False,
        backpressure=_raise_file_limit(),
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_TIMEOUT_SECONDS,
        log_access=False,
        log_level=LogLevels.error,
    )
    # Standard output is reserved for the lines that docs/operations.md promises.
    for handler in logging.getLogger("_granian").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)
    threading.Thread(target=_print_address, args=(server,), daemon=True).start()
    try:
        server.serve(target_loader=_load_application, wrap_loader=False)
    except SystemExit:
        # Granian also exits with 1 if it is stopped just after a worker died.
        if not server.interrupt_signal:
            raise


def _raise_file_limit() -> int:
    """Raises the limit of open files, which workers inherit. Returns how many connections it leaves to a worker."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + RESERVED_FILES
    if 0 <= soft < wanted:
        soft = wanted if hard < 0 else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft < 0 else max(1, min(MAX_CONNECTIONS, soft - RESERVED_FILES))


class _Server(MPServer):
    def _respawn_workers(self, *arguments: Any, **options: Any) -> None:
        """Restarts dead workers without limit; Granian stops the service when one dies twice within 5 s."""
        super()._respawn_workers(*arguments, **options)
        self.respawned_wrks.clear()
        time.sleep(0.2)


def _print_address(server: MPServer) -> None:
    """Prints the address once all workers are forked and one of them listens."""
    while len(server.wrks) < settings.WORKERS:
        time.sleep(0.01)
    while True:
        with suppress(OSError), socket.create_connection((settings.HOST, settings.PORT), timeout=1):
            break
        time.sleep(0.01)
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    print(f"Address: http://{host}:{settings.PORT}", flush=True)


def _load_application() -> Any:
    """Runs in a worker: prepares the process, and returns the application."""
    # Until Granian sets its own handler, the one inherited from the parent would swallow SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C signals the whole process group. Only the parent may receive it, which then stops its workers in order.
    os.setpgid(0, 0)
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2): no worker outlives the parent
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    metrics.share()
    from config.server.rsgi import application

    return application
