"""The application as `manage.py serve` runs it: RSGI, Granian's own interface.

A request is received on the event loop, where a slow client costs a connection and no thread. A short one is run by
Django in the loop's own thread, on one database connection: those that arrived together side by side, each of which has
the thread for itself but while it waits for the database. A second thread would cost as much as the rest of this
module: two wake-ups a request, and the interpreter's lock handed over at each of them. What is slow runs in another
process (config.server.lanes).

Granian's own thread, which needs no Python, goes on meanwhile: it accepts, reads headers and bodies, and sends.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from granian.rsgi import HTTPProtocol, ProtocolClosed, Scope  # type: ignore[attr-defined]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django: Any = get_wsgi_application()

from config.api.requests import find_max_body  # noqa: E402 - they need the apps
from config.api.versions.usage import SECONDS_BETWEEN_WRITES, uses  # noqa: E402
from config.http.errors import Detail, DomainError, ErrorCode, invalid  # noqa: E402
from config.http.request_limits import body_too_long, screen  # noqa: E402
from config.postgresql.replicas import get_replicas  # noqa: E402
from config.server.answers import Environ, refuse  # noqa: E402
from config.server.background import Repetition  # noqa: E402
from config.server.deadlines import Deadline  # noqa: E402
from config.server.draining import drain  # noqa: E402
from config.server.fast_lane import run_together  # noqa: E402
from config.server.lanes import Lanes  # noqa: E402
from config.server.log_writer import log  # noqa: E402
from config.server.readiness import probe  # noqa: E402
from config.server.slow_lane import SlowProcess  # noqa: E402
from config.server.tracing import traces  # noqa: E402

Headers = Mapping[str, str]

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
ONCE = ("host", "content-type", "content-length")


class Application:
    """What Granian calls: at the start and the end of a worker, and in between for each request.

    Attributes:
        slow_process: of the slow lane, forked before the worker has threads; without one, there is no slow lane.
    """

    slow_process: SlowProcess | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._lanes = Lanes(django, loop, self.slow_process)
        self._deadline = Deadline(loop, SECONDS_FOR_A_BODY)
        self._writing = Repetition(uses.write, SECONDS_BETWEEN_WRITES)
        if self.slow_process:
            drain.prepare(loop)
            self._writing.start()
            log.start()
            traces.start()
            if settings.REPLICAS:
                get_replicas()
            # Known before the first request.
            run_together([probe.ask])
            probe.start()

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Lets what was begun end, also for clients that have left: for those, Granian does not wait."""
        while begun := asyncio.all_tasks(loop):
            ended, _ = loop.run_until_complete(asyncio.wait(begun, timeout=1))
            if not ended and not self._lanes.waits_for_database:
                # Bodies that nobody receives any more.
                break
        if self.slow_process:
            self._writing.stop()
            self.slow_process.close()
        close_old_connections()
        uses.write()
        traces.stop()
        log.stop()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        headers, repeated = _headers(scope)
        environ = _environ(scope, headers)
        has_rest = await _receive(protocol, headers, repeated, environ, self._deadline)
        await self._lanes.run(environ, protocol)
        if has_rest:
            await _drain(protocol, self._deadline)


application = Application()


async def _receive(
    protocol: HTTPProtocol, headers: Headers, repeated: list[str], environ: Environ, deadline: Deadline
) -> bool:
    """Puts the body into the environment, or the refusal of a request that must not be run.

    Args:
        deadline: of the body.

    Returns:
        Whether a body that is too long is still to be read: the client is answered while it sends.
    """
    try:
        if repeated:
            raise invalid(*(Detail(name.title(), "The header may stand only once.") for name in repeated))
        screen(environ)
        body = b""
        if "content-length" in headers or "transfer-encoding" in headers:
            limit = find_max_body(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["CONTENT_TYPE"])
            body = await deadline.wait_for(_body(protocol, headers, limit))
    except TimeoutError:
        message = f"The body did not arrive within {SECONDS_FOR_A_BODY:g} seconds."
        refuse(environ, invalid(Detail("", message)))
    except Exception as problem:  # noqa: BLE001 - a DomainError, or a fault of ours: Granian's answer has no body
        refuse(environ, problem)
        is_too_long = isinstance(problem, DomainError) and problem.code is ErrorCode.PAYLOAD_TOO_LARGE
        # A client that waits for `100 Continue` (RFC 9110, section 10.1.1) is answered before it sends so much.
        return is_too_long and "content-length" in headers and "expect" not in headers
    else:
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)
    return False


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
    raise body_too_long(limit)


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
    if size > limit:
        raise body_too_long(limit)
    if chunks > MAX_CHUNKS:
        raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body comes in more than {MAX_CHUNKS} chunks.")
    if ends != 1:
        raise _incomplete()
    return bytes(body)


async def _drain(protocol: HTTPProtocol, deadline: Deadline) -> None:
    """Reads the body of a request that is answered already, up to a bound, and throws it away."""
    with suppress(DomainError, TimeoutError, ProtocolClosed):
        await deadline.wait_for(_streamed(protocol, 0))


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
    client, client_port = _address(scope.client)
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _as_latin_1(scope.path),
        "QUERY_STRING": _as_latin_1(scope.query_string),
        "REMOTE_ADDR": client,
        "REMOTE_PORT": client_port,
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
