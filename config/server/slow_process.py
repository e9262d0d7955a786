"""The process of the slow lane: one beside each worker, whose threads run requests that are declared slow.

A process, and not threads of the worker: Python's own work holds the interpreter's lock, so that one thread that
renders an export lets the others wait for milliseconds each time they come back from the database. A process can also
be given a lower priority. A thread cannot: one that holds the lock and is not scheduled stops all others.

The worker sends a request down one of its channels, one at a time each, and gets the response back; a stream piece by
piece, each when the client has taken the one before it.
"""

import logging
import os
import pickle
import signal
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from contextvars import Context
from io import BytesIO
from multiprocessing.connection import Connection
from struct import Struct
from threading import Thread
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, close_old_connections

from config.api.versions.usage import SECONDS_BETWEEN_WRITES, uses
from config.erasure.eraser import erase
from config.http.lanes import Lane
from config.http.request_state import get_state
from config.postgresql.connections import cut_waiting
from config.postgresql.replicas.watch import SECONDS_BETWEEN_LOOKS, get_replicas, goes_on_without_primary
from config.server import metrics
from config.server.answers import Answer, begin_answer
from config.server.background import Repetition
from config.server.logs import log
from config.server.processes import close_other_files, end_with_parent, return_memory
from config.server.requests import Environ
from config.server.tracing import traces

logger = logging.getLogger(__name__)

# How many slow requests a worker runs at once, each on a database connection of its own.
THREADS = 4
# Slow requests yield the processor to fast ones: of a busy one, they get a quarter.
NICENESS = 5
# Whether there is something to erase.
SECONDS_BETWEEN_ERASURES = 0.5
# The length before each message (multiprocessing.connection).
_LENGTH = Struct("!i")
# What the worker sends during a stream: whether it wants the next piece. It sends nothing for one that has failed.
NEXT, STOP = True, False


class Outcome(NamedTuple):
    """What became of a request.

    Attributes:
        response: the whole of it, or the head of a stream.
        user_id: whom the request was counted for, where it was a user.
        is_counted: whether it was counted.
        is_stream: whether its body follows, piece by piece.
        send_at: see RequestState.
    """

    response: Answer
    user_id: int | None
    is_counted: bool
    is_stream: bool
    send_at: float | None


class SlowProcess:
    """The process, as its worker sees it.

    Args:
        pid: its process id.
        channels: the worker's ends; the last one is for monitoring.
        life: nothing is sent over it; it ends when the process ends.
    """

    def __init__(self, pid: int, channels: Sequence[socket.socket], life: socket.socket) -> None:
        self._pid = pid
        self.channels, self._life = channels, life
        for channel in channels:
            channel.setblocking(False)

    def watch(self, loop: AbstractEventLoop, died: Callable[[], None]) -> None:
        """Calls a function once when the process has died."""

        def tell() -> None:
            loop.remove_reader(self._life)
            died()

        loop.add_reader(self._life, tell)

    def close(self) -> None:
        """Lets the process end, after what it has begun."""
        for channel in (*self.channels, self._life):
            channel.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


async def send(loop: AbstractEventLoop, channel: socket.socket, message: object) -> None:
    """Sends a message to the process, as its `multiprocessing.connection.Connection` reads it.

    Raises:
        ConnectionError: the process has died. Nobody knows what it did before.
    """
    content = pickle.dumps(message)
    await loop.sock_sendall(channel, _LENGTH.pack(len(content)) + content)


async def receive(loop: AbstractEventLoop, channel: socket.socket) -> Any:
    """The next message of the process.

    Raises:
        ConnectionError: the process has died.
    """
    (length,) = _LENGTH.unpack(await _receive(loop, channel, _LENGTH.size))
    return pickle.loads(await _receive(loop, channel, length))  # noqa: S301 - of our own process


async def _receive(loop: AbstractEventLoop, channel: socket.socket, length: int) -> bytearray:
    received = bytearray(length)
    view = memoryview(received)
    while view:
        count = await loop.sock_recv_into(channel, view)
        if not count:
            raise ConnectionResetError("The process of the slow lane has died.")
        view = view[count:]
    return received


# --- In the process itself


def start(django: Any, cause: metrics.StartCause) -> SlowProcess:
    """Forks the process. The caller must have neither threads nor database connections.

    Args:
        django: Django's WSGI application.
        cause: why the worker is started, which the process belongs to.
    """
    # One more for monitoring, and one over which nothing is sent.
    pairs = [socket.socketpair() for _ in range(THREADS + 2)]
    worker = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            _serve(django, [theirs for _, theirs in pairs], worker, cause)
        finally:
            os._exit(0)
    for _, theirs in pairs:
        theirs.close()
    *channels, life = (ours for ours, _ in pairs)
    return SlowProcess(pid, channels, life)


def _serve(django: Any, sockets: Sequence[socket.socket], worker: int, cause: metrics.StartCause) -> None:
    # It is stopped by its channels, when the worker has got the last response.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(worker)
    # The listening socket above all: what nobody accepts there would wait in vain.
    close_other_files({each.fileno() for each in sockets})
    os.nice(NICENESS)
    return_memory()
    metrics.start(Lane.SLOW, cause)
    log.start()
    traces.start()
    if settings.REPLICAS:
        get_replicas()
    writing = Repetition(uses.write, SECONDS_BETWEEN_WRITES, is_called_at_end=True)
    writing.start()
    erasing = _build_erasing()
    erasing.start()
    threads = [
        Thread(target=_serve_channel, args=(django, Connection(channel.detach())), daemon=True)
        for channel in sockets[:-1]
    ]
    for thread in threads:
        thread.start()
    if settings.READ_ONLY_WITHOUT_PRIMARY:
        Repetition(_cut_in_vain, SECONDS_BETWEEN_LOOKS).start()
    for thread in threads:
        thread.join()
    erasing.stop()
    writing.stop()
    traces.stop()
    log.stop()


def _build_erasing() -> Repetition:
    """Erases what removed users have left, on one connection. What is left to do is in the database."""

    def work() -> None:
        close_old_connections()
        erase(is_stopped=repetition.is_stopped)

    repetition = Repetition(work, SECONDS_BETWEEN_ERASURES, keeps_connection=True)
    return repetition


def _cut_in_vain() -> None:
    """Ends what requests wait for where no primary is known: reads of replicas need these threads."""
    if goes_on_without_primary() and (count := cut_waiting(DEFAULT_DB_ALIAS)):
        logger.error("There is no primary; connections of the slow lane are cut: %s.", count)


def _serve_channel(django: Any, channel: Connection) -> None:
    try:
        while True:
            _run(django, channel, *channel.recv())
    except (EOFError, ConnectionError):
        # The worker has left, perhaps with an answer unread.
        return
    except BaseException:
        # The worker would wait for an answer of this thread for ever. It notices the end of the process.
        logger.critical("A thread of the slow lane failed", exc_info=True)
        log.stop()
        os._exit(1)


def _run(django: Any, channel: Connection, environ: Environ, body: bytes) -> None:
    environ["wsgi.input"] = BytesIO(body)
    response, stream = Context().run(begin_answer, django, environ)
    state = get_state(environ)
    is_stream, is_counted = stream is not None, state.quota_fields is not None
    channel.send(Outcome(response, state.user_id, is_counted, is_stream, state.send_at))
    if stream is not None:
        with closing(stream):
            _send_pieces(channel, filter(None, stream), dict(response.headers).get("Request-Id"))


def _send_pieces(channel: Connection, pieces: Iterator[bytes], request_id: str | None) -> None:
    """Sends each piece of a stream when the worker asks for it, and nothing at the end."""
    while channel.recv() == NEXT:
        try:
            piece = next(pieces, b"")
        except Exception:
            logger.exception("Request-Id %s: a stream was cut", request_id)
            channel.send(None)
            return
        channel.send(piece)
        if not piece:
            return
    logger.info("Request-Id %s: the client left a stream, or did not read it", request_id)
