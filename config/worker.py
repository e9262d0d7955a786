"""A worker of `manage.py serve`: one process of Granian, on a socket that others have made."""

import gc
import logging
import os
import resource
import signal
import sys
import threading
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from config import embedded, metrics

# Of a worker, at once. A connection that only waits costs little, so there are many: further ones wait for a place.
CONNECTIONS = 4096
# What a worker opens beside connections of clients.
OTHER_FILES = 256
# Connections that wait to be accepted.
BACKLOG = 1024
# For the headers of a request, and also between two requests of a connection.
SECONDS_FOR_HEADERS = 30


def load() -> None:
    """Loads the application; workers that are forked afterwards share it."""
    import config.rsgi
    import config.urls  # noqa: F401

    # A look for garbage writes to every object that it looks at, and so ends the sharing of its page. What is loaded
    # stays: no process shall look for garbage in it again.
    gc.collect()
    gc.freeze()


def run(socket: int) -> None:
    """Serves on a listening socket until SIGTERM, or until the standard input ends: that is, the supervisor."""
    threading.Thread(target=_end_with_the_supervisor, daemon=True).start()
    metrics.share()
    server = _Server(
        "config.rsgi:application",
        interface=Interfaces.RSGI,
        # HTTP/2 is for the proxy: clients that vanish in it are noticed by no deadline of Granian's.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=SECONDS_FOR_HEADERS * 1000, max_buffer_size=64 * 1024),
        websockets=False,
        backlog=BACKLOG,
        backpressure=_connections(),
        log_access=False,
        log_level=LogLevels.error,
    )
    server.listening = socket
    # Standard output is for the lines promised in docs/operations.md.
    for handler in logging.getLogger("_granian").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)
    database = embedded.default_cluster().supervision() if settings.EMBEDDED_DATABASE else nullcontext()
    with database:
        server.serve(target_loader=_application, wrap_loader=False)


class _Server(MPServer):
    """Granian's server without its processes: the one worker is this process."""

    listening: int

    def _serve(self, spawn_target: Any, target_loader: Any) -> None:
        # On Linux, Granian listens again, which changes nothing.
        backlog = [self.backlog] if sys.platform == "linux" else []
        self._shd = SocketHolder(self.listening, False, *backlog)  # type: ignore[assignment, call-arg]
        self._sso = None
        self._spawn_worker(0, spawn_target, target_loader).inner.run()


def _application() -> Any:
    from config.rsgi import application

    return application


def _connections() -> int:
    """How many connections a worker may hold; the limit of open files is raised to fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OTHER_FILES
    if 0 <= soft < wanted:
        soft = wanted if hard < 0 else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft < 0 else max(1, min(CONNECTIONS, soft - OTHER_FILES))


def _end_with_the_supervisor() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
