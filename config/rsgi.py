"""The application as `manage.py serve` runs it: RSGI, Granian's own interface.

A request is received on the event loop, where a slow client costs a connection and no thread, and is run by Django in
the one request thread of the process: one request at a time, on one database connection.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from queue import SimpleQueue

from django.conf import settings
from django.db import close_old_connections
from granian.rsgi import HTTPProtocol, ProtocolClosed, Scope  # type: ignore[attr-defined]

from config.api.errors import Detail, DomainError, ErrorCode, invalid
from config.api.requests import screen
from config.api.version_use import SECONDS_BETWEEN_WRITES, uses
from config.wsgi import Environ, answer, refuse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

Headers = Mapping[str, Sequence[str]]

# From the end of the headers to the end of the body, however it trickles in. Less than `serve` gives its workers to
# stop, so that a stalled body ends no worker before its other requests are done.
SECONDS_FOR_A_BODY = 15.0
# How much of a body that is refused for its size is still read. Many clients look for the answer only after they
# sent everything, and find a broken pipe when the server closes on them first.
DRAINED_BYTES = 64 * 1024 * 1024
# Every chunk costs a turn of the event loop, also one of a single byte.
MAX_CHUNKS = 16 * 1024
# Servers that take the first of two and others that take the last would disagree about the request.
ONCE = ("host", "content-type", "content-length")

logger = logging.getLogger(__name__)


class Application:
    """What Granian calls: at the start and the end of a worker, and in between for each request.

    The requests of a worker run in one thread of its own, and not in an executor, which would cost as much again as
    all the rest of this module.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="requests", daemon=True)
        self._thread.start()
        self._write_down()

    def _write_down(self) -> None:
        """Has the counts of this process written, again and again, also while no request comes."""
        self._jobs.put(_write_version_uses)
        self._loop.call_later(SECONDS_BETWEEN_WRITES, self._write_down)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Lets what was begun end, also for clients that have left."""
        self._jobs.put(_write_version_uses)
        self._jobs.put(None)
        self._thread.join()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answers a request. A client that leaves meanwhile changes nothing: what was received whole is done."""
        headers = _headers(scope)
        environ = _environ(scope, headers)
        await _receive(protocol, headers, environ)
        done = self._loop.create_future()
        self._jobs.put(partial(self._answer, environ, protocol, done))
        await done

    def _run(self) -> None:
        while job := self._jobs.get():
            try:
                job()
            except BaseException:
                # Nothing may end the one thread. A request that is not answered gets Granian's own 500.
                logger.critical("A job of the worker failed", exc_info=True)

    def _answer(self, environ: Environ, protocol: HTTPProtocol, done: asyncio.Future[None]) -> None:
        try:
            protocol.response_bytes(*answer(environ))
        finally:
            self._loop.call_soon_threadsafe(done.set_result, None)


def _write_version_uses() -> None:
    # Between requests, at whose beginning Django would look after the connection.
    close_old_connections()
    uses.write()


application = Application()


async def _receive(protocol: HTTPProtocol, headers: Headers, environ: Environ) -> None:
    """Puts the body into the environment, or the refusal of a request that must not be run."""
    try:
        _refuse_repeated(headers)
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


def _refuse_repeated(headers: Headers) -> None:
    repeated = [name for name in ONCE if len(headers.get(name, ())) > 1]
    if repeated:
        raise invalid(*(Detail(name.title(), "The header may stand only once.") for name in repeated))


async def _body(protocol: HTTPProtocol, headers: Headers, limit: int) -> bytes:
    """Reads the body, whole and no longer than the limit.

    Raises:
        DomainError: PAYLOAD_TOO_LARGE, or VALIDATION_ERROR for a body without its end.
    """
    if "content-length" not in headers:
        return await _streamed(protocol, limit)
    if int(headers["content-length"][0]) <= limit:
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


def _headers(scope: Scope) -> Headers:
    """The values of each header; none, rather than no header, where they are not ASCII."""
    headers: dict[str, list[str]] = {name: [] for name in scope.headers.keys()}  # noqa: SIM118 - not a mapping
    for name, value in scope.headers.items():
        headers[name].append(value)
    return headers


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
    for name, values in headers.items():
        # In an environment `X_API_Key` and `X-API-Key` would be the same.
        if "_" not in name:
            environ[_variable(name)] = (";" if name == "cookie" else ", ").join(values)
    return environ


def _variable(name: str) -> str:
    variable = name.replace("-", "_").upper()
    return variable if name in {"content-type", "content-length"} else f"HTTP_{variable}"


def _as_latin_1(text: str) -> str:
    """PEP 3333: a string of the characters that the bytes are in Latin-1."""
    return text.encode().decode("latin-1")


def _address(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), port
