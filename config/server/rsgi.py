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
from functools import lru_cache
from io import BytesIO
from typing import Any

from django import setup
from django.conf import settings
from django.db import close_old_connections
from granian.rsgi import HTTPProtocol, Scope  # type: ignore[attr-defined]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
setup(set_prefix=False)

from config.api.handlers import Handler  # noqa: E402 - they need the apps
from config.api.requests import find_max_body  # noqa: E402
from config.api.versions.usage import SECONDS_BETWEEN_WRITES, uses  # noqa: E402
from config.http.errors import Detail, ErrorCode, invalid  # noqa: E402
from config.http.lanes import Lane  # noqa: E402
from config.http.request_limits import screen  # noqa: E402
from config.postgresql.replicas import get_replicas  # noqa: E402
from config.server.answers import Environ, choose_lane, find_paths_beside_lanes, refuse  # noqa: E402
from config.server.background import Repetition  # noqa: E402
from config.server.balance import Balance, Loads  # noqa: E402
from config.server.bodies import Bodies, Pieces  # noqa: E402
from config.server.deadlines import Deadline  # noqa: E402
from config.server.draining import drain  # noqa: E402
from config.server.fast_lane import run_together  # noqa: E402
from config.server.lanes import Lanes  # noqa: E402
from config.server.log_writer import log  # noqa: E402
from config.server.readiness import probe  # noqa: E402
from config.server.reception import Reception  # noqa: E402
from config.server.slow_process import SlowProcess  # noqa: E402
from config.server.tracing import traces  # noqa: E402

Headers = Mapping[str, str]

django: Any = Handler()
# From the reception of the headers to the end of the body, however it trickles in. Less than `serve` gives its workers
# to stop, so that a stalled body ends no worker before its other requests are done.
SECONDS_FOR_A_BODY = 15.0
# Longer names of headers are not remembered; nobody needs one.
MAX_CACHED_NAME = 64
# Servers that take the first of two and others that take the last would disagree about the request.
ONCE = ("host", "content-type", "content-length")


class Application:
    """What Granian calls: at the start and the end of a worker, and in between for each request.

    Attributes:
        slow_process: of the slow lane, forked before the worker has threads; without one, there is no slow lane.
        balance: of the connections among the workers; of one alone, as long as there is no other.
    """

    slow_process: SlowProcess | None = None
    balance = Balance(Loads(1), 0, drain)

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reception = Reception(loop)
        self._beside_lanes = find_paths_beside_lanes()
        self._lanes = Lanes(django, loop, self.slow_process, self._reception, self.balance)
        self._bodies = Bodies(Deadline(loop, SECONDS_FOR_A_BODY))
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
            # Last: from now on others send connections here.
            self.balance.look(loop)

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
        is_admitted = self._reception.admit()
        if not is_admitted and scope.path not in self._beside_lanes:
            await self._reception.wait_for_turn()
            is_admitted = True
        headers, repeated = _headers(scope)
        environ = _environ(scope, headers)
        rest = await _receive(protocol, headers, repeated, environ, self._bodies)
        if not is_admitted and choose_lane(environ) is not Lane.NONE:
            await self._reception.wait_for_turn()
        await self._lanes.run(environ, protocol)
        if rest:
            await self._bodies.throw_away(rest)


application = Application()


async def _receive(
    protocol: HTTPProtocol, headers: Headers, repeated: list[str], environ: Environ, bodies: Bodies
) -> Pieces | None:
    """Puts the body into the environment, or the refusal of a request that must not be run.

    Returns:
        What is still to be read of a body that is not taken: the client is answered while it sends. None for nothing.
    """
    pieces = None
    try:
        if repeated:
            raise invalid(*(Detail(name.title(), "The header may stand only once.") for name in repeated))
        screen(environ)
        body = b""
        if "content-length" in headers or "transfer-encoding" in headers:
            limit = find_max_body(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["CONTENT_TYPE"])
            pieces = Pieces(protocol)
            body = await bodies.receive(pieces, headers, limit)
    except TimeoutError:
        message = f"The body did not arrive within {SECONDS_FOR_A_BODY:g} seconds."
        refuse(environ, invalid(Detail("", message)))
    except Exception as problem:  # noqa: BLE001 - a DomainError, or a fault of ours: Granian's answer has no body
        refuse(environ, problem)
        return pieces if pieces and _is_coming(pieces, headers, getattr(problem, "code", None)) else None
    else:
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)
    return None


def _is_coming(pieces: Pieces, headers: Headers, code: ErrorCode | None) -> bool:
    """Whether the client sends a body on that was refused with a code."""
    if code is ErrorCode.PAYLOAD_TOO_LARGE:
        # One that waits for `100 Continue` (RFC 9110, section 10.1.1) is answered before it sends so much.
        return "content-length" in headers and "expect" not in headers and not pieces.is_begun
    return code is ErrorCode.SERVICE_UNAVAILABLE


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
