import os
import secrets
import signal
import socket
import sys
from argparse import SUPPRESS
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connections, transaction

from config import embedded, metrics, supervisor, worker
from config.management.command import ServiceCommand
from config.management.migrations import migrate, one_at_a_time

ADMINISTRATOR = "admin@example.com"


class Command(ServiceCommand):
    help = (
        "Sets up the database and serves the API in the foreground, until Ctrl-C or SIGTERM. Where and how it serves "
        "is said by variables of the environment, which docs/operations.md lists."
    )
    example = "HOST=127.0.0.1 PORT=8000 manage.py serve"

    def add_arguments(self, parser: CommandParser) -> None:
        # How the supervisor starts a worker in the place of a dead one.
        parser.add_argument("--socket", type=int, help=SUPPRESS)

    def handle(self, **options: Any) -> None:
        if options.get("socket") is not None:
            worker.load()
            worker.run(options["socket"])
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        database = embedded.default_cluster().running() if settings.EMBEDDED_DATABASE else nullcontext()
        with _reserved(settings.HOST, settings.PORT) as holder, database as lock:
            with one_at_a_time():
                migrate()
                if settings.LOCAL:
                    _fill()
            # A worker is a fork: it must find no connection that it would share with its siblings.
            connections.close_all()
            with TemporaryDirectory(prefix="metrics-") as folder:
                os.environ[metrics.FOLDER] = folder
                _serve(holder, lock, folder)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the start-up. A second signal must not interrupt the cleaning up after the first."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(0)


@contextmanager
def _reserved(host: str, port: int) -> Iterator[socket.socket]:
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
        yield holder


def _fill() -> None:
    """Gives a new database demo data, an administrator and an API key, and prints the latter two."""
    import accounts.services
    import users.services
    from config import audit
    from config.management import demo
    from users.models import User

    with audit.rows_alone(), transaction.atomic():
        first = not User.objects.administrators().exists()
        if not User._base_manager.exists():
            demo.load()
        if first:
            password = secrets.token_urlsafe(15)
            user = users.services.create(name="Administrator", email=ADMINISTRATOR, role="admin", password=password)
            _, key = accounts.services.create_api_key(user, name="First key", scopes=None, expires_at=None)
    if first:
        print(f"Administrator: {ADMINISTRATOR}", f"Password: {password}", f"API key: {key}", sep="\n", flush=True)
    else:
        print("Another API key: .venv/bin/python manage.py create_api_key EMAIL", flush=True)


def _serve(holder: socket.socket, lock: int | None, folder: str) -> NoReturn:
    """Starts the workers, and has this process replaced by their supervisor."""
    # So that a mistake in the code ends the start with its traceback.
    worker.load()
    sockets = _listening(holder)
    lifeline, end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.AWAITED)
    workers = [(_forked(own, {*sockets, end} - {own}, lifeline), own) for own in sockets]
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    print(f"Address: http://{host}:{settings.PORT}", flush=True)
    supervisor.become(workers, (lifeline, end), holder.fileno(), lock, folder)


def _listening(holder: socket.socket) -> list[int]:
    """For each worker a socket that listens. The kernel spreads connections over them, but on Linux alone."""
    sockets = []
    for _ in range(settings.WORKERS if sys.platform == "linux" else 1):
        listening = socket.socket(holder.family)
        for level, option in (socket.SOL_SOCKET, socket.SO_REUSEADDR), (socket.SOL_SOCKET, socket.SO_REUSEPORT):
            listening.setsockopt(level, option, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind(holder.getsockname())
        listening.listen(worker.BACKLOG)
        sockets.append(listening.detach())
    return sockets if sys.platform == "linux" else sockets * settings.WORKERS


def _forked(own: int, others: set[int], lifeline: int) -> int:
    """Starts a worker that shares what is loaded, on a socket of its own. Returns its process id."""
    if sys.platform != "linux":
        # Libraries of macOS do not bear a fork after their use: there, the supervisor starts the workers.
        return 0

    def work() -> None:
        for descriptor in others:
            os.close(descriptor)
        worker.run(own)

    return supervisor.fork(work, lifeline)
