import gc
import logging
import multiprocessing
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from tempfile import mkdtemp
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.hashers import get_hashers
from django.core.management.base import CommandError
from django.db import connections, transaction
from django.urls import reverse
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, RuntimeModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from config import COMMIT, VERSION
from config.api.backends import get_backend
from config.http.lanes import Lane
from config.http.url_map import find_view
from config.local.cluster import get_default_cluster, running_beside
from config.management.command import ServiceCommand
from config.management.migrations import migrate, setup_lock
from config.management.pooler import keeps_prepared_statements
from config.server import metrics, slow_process
from config.server.metrics import StartCause
from config.server.processes import end_with_parent, keep_to_processor, wake_without_preemption
from config.server.reload import ENDING, Predecessor, get_predecessor, reload
from config.server.systemd import notify

logger = logging.getLogger("serve")

ADMINISTRATOR_EMAIL = "admin@example.com"
STOP_TIMEOUT_SECONDS = 20
# Per worker. Idle connections cost little, so there may be many; further ones wait to be accepted.
MAX_CONNECTIONS = 4096
# File descriptors of a worker that are not connections of clients.
RESERVED_FILES = 256
# For the headers of a request, and also between two requests of a connection.
HEADER_TIMEOUT_SECONDS = 30
# Connections that wait to be accepted by a worker.
BACKLOG = 1024
# Granian, which configures logging in each process, would write lines of its own form to standard output.
LOGGING_OF_GRANIAN: dict[str, Any] = {"formatters": {}, "handlers": {}, "loggers": {"_granian": {"propagate": True}}}


class Command(ServiceCommand):
    help = (
        "Sets up the database and serves the API in the foreground until Ctrl-C or SIGTERM. Environment variables "
        "configure the service; docs/settings.md lists them."
    )
    example = "HOST=127.0.0.1 PORT=8000 manage.py serve"

    def handle(self, **options: object) -> None:
        predecessor = get_predecessor()
        for number in ENDING:
            signal.signal(number, _exit)
        with ExitStack() as stack:
            if predecessor:
                # Its workers end in order, also where this service ends before it has workers of its own.
                stack.callback(predecessor.retire, STOP_TIMEOUT_SECONDS)
            # A signal that came since this program was executed again is handled now.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            sockets = stack.enter_context(_listening(settings.HOST, settings.PORT, predecessor))
            if settings.EMBEDDED_DATABASE:
                stack.enter_context(get_default_cluster().supervised())
            with setup_lock():
                migrate()
                if settings.LOCAL:
                    _create_first_data()
            if settings.POOLED and settings.FAST_PATH and not keeps_prepared_statements():
                remedy = "take PgBouncer 1.21 or later, with max_prepared_statements above 0."
                raise CommandError(f"the pooler loses prepared statements; {remedy}")
            # A worker is a fork: it must find no connection that it would share with its siblings.
            connections.close_all()
            # It outlives this program, and not the service.
            os.environ[metrics.FOLDER] = folder = predecessor.metrics if predecessor else mkdtemp(prefix="metrics-")
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            if settings.LOCAL:
                stack.enter_context(running_beside(_deliver))
            _serve(sockets, predecessor)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the start-up. A second signal must not interrupt the cleanup after the first."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(0)


@contextmanager
def _listening(host: str, port: int, predecessor: Predecessor | None) -> Iterator[Sequence[socket.socket]]:
    """A socket for each worker, which listens on the port.

    They share the port by SO_REUSEPORT, by which a second service of the same account could share it, too. So the port
    is first bound exclusively, and SO_REUSEPORT is set afterwards. This process has them open as long as it lives: with
    a worker alone, the connections would go that it has not accepted yet.

    Args:
        host: the address.
        port: of it.
        predecessor: whose sockets are used.

    Raises:
        CommandError: the port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if predecessor:
        with ExitStack() as stack:
            yield [stack.enter_context(socket.socket(fileno=file)) for file in predecessor.sockets]
        return
    with socket.socket(family) as reservation:
        try:
            # The port may still have connections in TIME_WAIT, of a service that has just stopped.
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reservation.bind((host, port))
        except OSError as error:
            raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with ExitStack() as stack:
            yield [stack.enter_context(_listen(family, host, port)) for _ in range(settings.WORKERS)]


def _listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host, port))
    made.listen(BACKLOG)
    made.setblocking(False)
    return made


def _create_first_data() -> None:
    """Creates demo data, an administrator, an API key and the reference's client in a new database.

    The administrator and the key are printed.
    """
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
            _, key = accounts.services.create_api_key(user, name="First key")
            _register_reference()
        email = User.objects.administrators().order_by("pk").first().email
    lines = [f"Administrator: {email}"]
    if is_new:
        lines += [f"Password: {password}", f"API key: {key}"]
    else:
        lines += [
            f"Another API key: .venv/bin/python manage.py create_api_key {email}",
            f"Another password: .venv/bin/python manage.py changepassword {email}",
        ]
    print(*lines, sep="\n", flush=True)


def _register_reference() -> None:
    """Registers the page of the reference as a public client, so that one can sign in there."""
    from accounts.models import Application
    from accounts.services import save_new_application
    from config.api.principal import SCOPES
    from config.site.documentation import OAUTH_REDIRECT

    # Under another name of loopback the page is another origin.
    application = Application(
        name="Reference",
        client_id=settings.REFERENCE_CLIENT_ID,
        client_type=Application.CLIENT_PUBLIC,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        allowed_scopes=list(SCOPES),
        redirect_uris=" ".join(
            f"http://{host}:{settings.PORT}{OAUTH_REDIRECT}" for host in ("127.0.0.1", "[::1]", "localhost")
        ),
    )
    save_new_application(application)


def _deliver(stopped: threading.Event) -> None:
    """Runs `manage.py deliver`, and restarts it when it dies."""
    command = [sys.executable, sys.argv[0], "deliver", "--parent", str(os.getpid())]
    # Only processes that answer requests share the metrics.
    environment = {name: value for name, value in os.environ.items() if name != metrics.FOLDER}

    while not stopped.wait(1):
        # Ctrl-C is for this process, which ends the other one in order.
        process = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603 - of constants
        while process.poll() is None:
            if stopped.wait(0.1):
                process.terminate()
                process.wait(STOP_TIMEOUT_SECONDS)


def _serve(sockets: Sequence[socket.socket], predecessor: Predecessor | None) -> None:
    # Imported before the fork, so that workers share the memory, and an error ends the start with its traceback.
    import config.asgi
    import config.urls  # noqa: F401

    # As well as the patterns and names of addresses, which are compiled where they are first looked at, and backends.
    for path in ("/nowhere", "/api/v1/nowhere"):
        find_view(path)
    reverse("admin:index")
    get_backend(settings.CREDENTIAL_BACKEND)
    get_backend(settings.QUOTA_BACKEND)
    get_hashers()
    # The garbage collector writes to each object that it visits, which would copy the shared memory pages. Frozen
    # objects are not visited again.
    gc.collect()
    gc.freeze()
    server = _Server(
        sockets,
        predecessor,
        address=settings.HOST,
        port=settings.PORT,
        interface=Interfaces.ASGI,
        workers=settings.WORKERS,
        # One thread for all sockets. For ASGI, Granian's default is several, which wait for each other and for Python.
        runtime_mode=RuntimeModes.st,
        # HTTP/2 is left to the proxy: no timeout of Granian detects its dead connections.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_TIMEOUT_SECONDS * 1000, max_buffer_size=64 * 1024),
        websockets=False,
        backpressure=_raise_file_limit(),
        respawn_failed_workers=True,
        respawn_interval=0,
        workers_kill_timeout=STOP_TIMEOUT_SECONDS,
        log_access=False,
        log_level=LogLevels.error,
        log_dictconfig=LOGGING_OF_GRANIAN,
    )
    threading.Thread(target=_tell_readiness, args=(server, predecessor), daemon=True).start()
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
    """Granian's server, whose workers each have a socket that outlives them.

    Args:
        sockets: one for each worker.
        predecessor: whose workers may not have ended yet.
        options: Granian's.
    """

    def __init__(self, sockets: Sequence[socket.socket], predecessor: Predecessor | None, **options: Any) -> None:
        super().__init__("config.asgi:application", **options)
        self._sockets, self._predecessor = sockets, predecessor
        self._cause = StartCause.PLAN

    def _init_shared_socket(self) -> None:
        self._sso = None

    def _spawn_worker(self, idx: int, *arguments: Any, **options: Any) -> Any:
        self._shd = SocketHolder(self._sockets[idx].fileno(), False, BACKLOG)  # type: ignore[call-arg, assignment]  # the stubs are older
        loader = partial(_load_application, idx, self._sockets, self._cause)
        return super()._spawn_worker(idx, *arguments, **{**options, "callback_loader": loader})

    def _drop_shared_socket(self) -> None:
        """New connections are refused at once from now on, so that clients go to another service."""
        for each in self._sockets:
            each.close()

    def _reload(self, *arguments: Any, **options: Any) -> None:
        """Replaces the workers, on SIGHUP: with an embedded database, which ends with this program, those alone."""
        if settings.EMBEDDED_DATABASE:
            super()._reload(*arguments, **options)  # type: ignore[no-untyped-call]  # of Granian
            return
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        environment = dict(os.environ)
        folder = environment.pop(metrics.FOLDER)
        earlier = self._predecessor.workers if self._predecessor else []
        workers = [*earlier, *(worker.inner.pid for worker in self.wrks)]
        present = Predecessor([each.fileno() for each in self._sockets], workers, folder)
        reload(present, environment, lambda: bool(self.interrupt_signal))

    def _respawn_workers(self, *arguments: Any, **options: Any) -> None:
        """Restarts dead workers without limit; Granian stops the service when one dies twice within 5 s."""
        # Those that are reloaded are alive.
        self._cause = StartCause.PLAN if all(worker.is_alive() for worker in self.wrks) else StartCause.DEATH  # type: ignore[no-untyped-call]  # of Granian
        super()._respawn_workers(*arguments, **options)
        self.respawned_wrks.clear()
        time.sleep(0.2)


def _tell_readiness(server: MPServer, predecessor: Predecessor | None) -> None:
    """Tells which release serves, once all workers are forked and one of them answers. Those of a predecessor end then.

    Locally, it prints the addresses of the pages for people; otherwise it is a line of the log.
    """
    while len(server.wrks) < settings.WORKERS:
        time.sleep(0.01)
    if predecessor:
        predecessor.retire(STOP_TIMEOUT_SECONDS)
    else:
        _wait_for_answer()
    release = f"Release {VERSION}{f' ({COMMIT})' if COMMIT else ''}"
    notify(f"READY=1\nSTATUS={release} serves.")
    if not settings.LOCAL:
        logger.info("%s serves %s.", release, settings.PUBLIC_URL)
    elif not predecessor:
        _print_addresses()


def _wait_for_answer() -> None:
    while True:
        # The sockets are there before the workers are: a connection alone says nothing.
        with suppress(OSError), socket.create_connection((settings.HOST, settings.PORT), timeout=5) as connection:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            if connection.recv(1):
                break
        time.sleep(0.01)


def _print_addresses() -> None:
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    address = f"http://{host}:{settings.PORT}"
    pages = {"Address": "", "Documentation": "/docs", "Sign in": settings.LOGIN_URL, "Admin": "/admin/"}
    print(*(f"{name}: {address}{path}" for name, path in pages.items()), sep="\n", flush=True)


def _load_application(index: int, sockets: Sequence[socket.socket], cause: StartCause) -> Any:
    """Runs in a worker: prepares the process, and returns the application.

    Args:
        index: of the worker.
        sockets: of all workers.
        cause: why the worker is started.
    """
    # Granian closes its own.
    sockets[index].detach()
    for each in sockets:
        each.close()
    # Until Granian sets its own handler, the one inherited from the parent would swallow SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C signals the whole process group. Only the parent may receive it, which then stops its workers in order.
    os.setpgid(0, 0)
    parent = multiprocessing.parent_process()
    end_with_parent(parent.pid if parent and parent.pid else os.getppid())
    from config.asgi import application, django

    # While the worker has no threads, which a fork would not have.
    application.slow_process = slow_process.start(django, cause)
    keep_to_processor(index, settings.WORKERS)
    wake_without_preemption()
    metrics.start(Lane.FAST, cause)
    return application
