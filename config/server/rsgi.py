"""The application as `manage.py serve` runs it: RSGI, Granian's own interface.

A request is received on the event loop, where a slow client costs a connection and no thread, and is run by Django in
the loop's own thread, on one database connection: those that arrived together side by side, each of which has the
thread for itself but while it waits for the database. A second thread for Django would cost as much as the rest of this
module: two wake-ups a request, and the interpreter's lock handed over at each of them.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from functools import lru_cache, partial
from io import BytesIO
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from granian.rsgi import HTTPProtocol, ProtocolClosed, Scope  # type: ignore[attr-defined]

from config.api.versions.usage import SECONDS_BETWEEN_WRITES, uses
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.request_limits import screen
from config.server.answers import Environ, answer, refuse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django: Any = get_wsgi_application()

Headers = Mapping[str, str]

logger = logging.getLogger(__name__)

# From the end of the headers to the end of the body, however it trickles in. Less than `serve` gives its workers to
# stop, so that a stalled body ends no worker before its other requests are done.
SECONDS_FOR_A_BODY = 15.0
# How much of a body that is refused for its size is still read. Many clients look for the answer only after they
# sent everything, and find a broken pipe when the server closes on them first.
DRAINED_BYTES = 64 * 1024 * 1024
# Every chunk costs a turn of the event loop, also one of a single byte.
MAX_CHUNKS = 16 * 1024
# Servers that take the first of two and others that take the last would disagree about the request.
# Longer names of headers are not remembered; nobody needs one.
MAX_CACHED_NAME = 64
# How many requests are run side by side at the most. They are answered at about the same time.
MAX_BATCH = 16
ONCE = ("host", "content-type", "content-length")


class Application:
    """What Granian calls: at the start and the end of a worker, and in between for each request.

    While Django runs requests, the loop stands still, and what arrives waits for its turn, in the order of arrival.
    Granian's own thread, which needs no Python, goes on meanwhile: it accepts, reads headers and bodies, and sends.
    """

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # In the order of arrival, as in a set that had one.
        self._received: dict[Callable[[], None], None] = {}
        loop.call_soon(self._write_usage)

    def _write_usage(self) -> None:
        """Has the counts of this process written, again and again, also while no request comes."""
        self._loop.call_later(SECONDS_BETWEEN_WRITES, self._write_usage)
        _run(_write_version_uses)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Lets what was begun end, also for clients that have left: for those, Granian does not wait."""
        while begun := asyncio.all_tasks(loop):
            ended, _ = loop.run_until_complete(asyncio.wait(begun, timeout=1))
            if not ended:
                # Bodies that nobody receives any more.
                break
        _run(_write_version_uses)

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answers a request. A client that leaves meanwhile changes nothing: what was received whole is done."""
        headers, repeated = _headers(scope)
        environ = _environ(scope, headers)
        await _receive(protocol, headers, repeated, environ)
        task = partial(_answer, environ, protocol)
        self._received[task] = None
        # Those that arrived meanwhile are received too.
        await asyncio.sleep(0)
        while task in self._received:
            # The first one does what there is for all; the others find it done.
            tasks = list(islice(self._received, MAX_BATCH))
            for each in tasks:
                del self._received[each]
            _run(*tasks)


def _run(*tasks: Callable[[], None]) -> None:
    """Does together what uses the database; whatever it raises ends neither the loop nor the worker.

    For that time this thread has no running loop. Where there is one, Django refuses the database, and its connection
    would be one for each task instead of one for the thread (asgiref.local).
    """
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        # A request that is not answered gets Granian's own 500.
        _run_tasks(tasks)
    finally:
        asyncio._set_running_loop(loop)


def _run_tasks(tasks: Sequence[Callable[[], None]]) -> None:
    if settings.FAST_PATH:
        from config.fastpath import batching
        from config.fastpath.postgresql.base import get_connection

        batching.run(tasks, get_connection("default").run_batches)
        return
    for task in tasks:
        try:
            Context().run(task)
        except BaseException:
            logger.critical("A task failed", exc_info=True)


def _answer(environ: Environ, protocol: HTTPProtocol) -> None:
    protocol.response_bytes(*answer(_django, environ))


def _write_version_uses() -> None:
    # Between requests, at whose beginning Django would look after the connection.
    close_old_connections()
    uses.write()


application = Application()


async def _receive(protocol: HTTPProtocol, headers: Headers, repeated: list[str], environ: Environ) -> None:
    """Puts the body into the environment, or the refusal of a request that must not be run."""
    try:
        if repeated:
            raise invalid(*(Detail(name.title(), "The header may stand only once.") for name in repeated))
        screen(environ)
        body = b""
        if "content-length" in headers or "transfer-encoding" in headers:
            async with asyncio.timeout(SECONDS_FOR_A_BODY):
                body = await _body(protocol, headers, settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)
    except TimeoutError:
        message = f"The body did not arrive within {SECONDS_FOR_A_BODY:g} seconds."
        refuse(environ, invalid(Detail("", message)))
    except Exception as problem:  # noqa: BLE001 - a DomainError, or a fault of ours: Granian's answer has no body
        refuse(environ, problem)
    else:
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)


async def _body(protocol: HTTPProtocol, headers: Headers, limit: int) -> bytes:
    """Reads the body, whole and no longer than the limit.

    Raises:
        DomainError: PAYLOAD_TOO_LARGE, or VALIDATION_ERROR for a body without its end.
    """
    if "content-length" not in headers:
        return await _streamed(protocol, limit)
    if int(headers["content-length"]) <= limit:
        try:
            return await protocol()
        except ProtocolClosed:
            raise _incomplete() from None
    if "expect" not in headers:
        await _streamed(protocol, 0)
    # A client that waits for `100 Continue` (RFC 9110, section 10.1.1) is refused before it sends so much.
    raise _too_large()


async def _streamed(protocol: HTTPProtocol, limit: int) -> bytes:
    """Reads a body piece by piece, and throws away what is over the limit, up to a bound."""
    body = bytearray()
    size = chunks = ends = 0
    async for piece in protocol:
        size += len(piece)
        chunks += 1
        # Granian gives an empty piece for the end, and one before it for an error or trailers: it does not say which.
        ends += not piece
        if size <= limit:
            body += piece
        if size > DRAINED_BYTES or chunks > MAX_CHUNKS:
            break
    if size > limit or chunks > MAX_CHUNKS:
        raise _too_large()
    if ends != 1:
        raise _incomplete()
    return bytes(body)


def _too_large() -> DomainError:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body is longer than {limit} bytes, or cut too small.")


def _incomplete() -> DomainError:
    return invalid(Detail("", "The body ends too early, or trailers follow it."))


def _headers(scope: Scope) -> tuple[Headers, list[str]]:
    """The value of each header, by its name in small letters; and those of ONCE that stand more often.

    Repeated ones are joined (RFC 9110, section 5.3), cookies by what stands between them. A value that is not ASCII is
    left out, and the header is there all the same.
    """
    given = scope.headers  # a copy of all headers, made at each look
    headers: dict[str, str] = {}
    repeated: dict[str, None] = {}
    for name, value in given.items():
        if name not in headers:
            headers[name] = value
            continue
        headers[name] += (";" if name == "cookie" else ", ") + value
        if name in ONCE:
            repeated[name] = None
    names = given.keys()
    if len(names) > len(headers):
        headers = dict.fromkeys(names, "") | headers
    return headers, list(repeated)


def _environ(scope: Scope, headers: Headers) -> Environ:
    """The WSGI environment of a request, without its body (PEP 3333)."""
    server, server_port = _address(scope.server)
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _as_latin_1(scope.path),
        "QUERY_STRING": _as_latin_1(scope.query_string),
        "REMOTE_ADDR": _address(scope.client)[0],
        "SERVER_NAME": server,
        "SERVER_PORT": server_port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "wsgi.url_scheme": scope.scheme,
        "HTTP_HOST": scope.authority or "",
    }
    for name, value in headers.items():
        if variable := (_variable if len(name) <= MAX_CACHED_NAME else _variable.__wrapped__)(name):
            environ[variable] = value
    return environ


# Clients send the same few names again and again; they may also make up as many as they like.
@lru_cache(maxsize=256)
def _variable(name: str) -> str:
    """The name of a header in the environment; none with `_`, since `X_API_Key` and `X-API-Key` would be the same."""
    if "_" in name:
        return ""
    variable = name.replace("-", "_").upper()
    return variable if name in {"content-type", "content-length"} else f"HTTP_{variable}"


def _as_latin_1(text: str) -> str:
    """PEP 3333: a string of the characters that the bytes are in Latin-1."""
    return text if text.isascii() else text.encode().decode("latin-1")


# The service's own, and those of clients, which send several requests through one connection.
@lru_cache(maxsize=256)
def _address(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), port
