"""The ASGI application (https://asgi.readthedocs.io/en/latest/specs/www.html), as `manage.py serve` runs it.

A request is received on the event loop, where a slow client costs a connection and no thread. A short one then runs in
a greenlet of the loop (config.fastpath.greenlets), which is left while it waits; what a view declares to be slow, and
everything without the fast path, runs in the process beside the worker (slow_lane.py).
"""

import asyncio
import logging
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from contextvars import Context
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from rest_framework.permissions import SAFE_METHODS

from config.api.requests import find_max_body
from config.api.versions.usage import SECONDS_BETWEEN_WRITES, uses
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.lanes import Lane
from config.http.request_limits import screen
from config.http.request_state import get_state
from config.postgresql.replicas.watch import get_replicas, goes_on_without_primary
from config.server import metrics
from config.server.answers import (
    Answer,
    answer,
    choose_lane,
    refuse,
    refuse_at_once,
)
from config.server.background import Repetition
from config.server.draining import drain
from config.server.logs import log
from config.server.readiness import probe
from config.server.requests import (
    MAX_SECONDS,
    RETRY_AFTER_SECONDS,
    Bodies,
    Callers,
    Environ,
    Receive,
    build_environ,
    build_overload,
    wait_until_left,
)
from config.server.slow_lane import ClientLeft, SlowLane, SlowStream
from config.server.slow_process import SlowProcess
from config.server.tracing import traces

# Before the fork, so that processes share it.
if settings.FAST_PATH:
    from config.fastpath.postgresql.base import start_engine

logger = logging.getLogger(__name__)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Per worker, in greenlets. More would only wait longer for each other. Callers with nothing under way may make it twice
# as many.
MAX_RUNNING = 192
# Of a stream: even a slow client can read this much in time.
MAX_CHUNK = 256 * 1024


class Application:
    """The entry point of the server: called at the start and the end of a worker, and for each request.

    Args:
        django: Django's WSGI application.

    Attributes:
        slow_process: of the slow lane, forked before the worker has threads.
    """

    slow_process: SlowProcess | None = None

    def __init__(self, django: Any) -> None:
        self._django = django
        self._bodies = Bodies()
        self._callers = Callers()
        # How many requests of each caller are run, until their answers are sent.
        self._in_flight: dict[Hashable, int] = {}
        self._engine: Any = None
        self._slow: SlowLane | None = None
        self._writing = Repetition(uses.write, SECONDS_BETWEEN_WRITES, is_called_at_end=True)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._respond(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            raise ValueError(f"There is no {scope['type']} here.")

    # --- A worker

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] == "lifespan.startup":
            try:
                await self.start(asyncio.get_running_loop())
            except Exception as error:
                logger.exception("The worker cannot start")
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self, loop: AbstractEventLoop) -> None:
        """Prepares the worker for its first request."""
        if settings.FAST_PATH:
            self._engine = start_engine(loop, _is_given_up)
        self._writing.start()
        if self.slow_process:
            self._slow = SlowLane(loop, self.slow_process)
            drain.prepare(loop)
            log.start()
            traces.start()
            if settings.REPLICAS:
                get_replicas()
            # Known before the first request.
            await asyncio.to_thread(probe.ask)
            probe.start()

    async def stop(self) -> None:
        """Ends the worker after what it has begun."""
        # A stream, above all, may take as long.
        deadline = asyncio.get_running_loop().time() + MAX_SECONDS
        while self._in_flight and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - once in its life
            await asyncio.sleep(0.05)
        if self._engine is not None:
            self._engine.close()
        self._writing.stop()
        if self.slow_process:
            self.slow_process.close()
        traces.stop()
        log.stop()

    # --- A request

    async def _respond(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        came = time.monotonic()
        environ, repeated = build_environ(scope)
        is_unread = await self._receive_body(environ, repeated, receive)
        state = get_state(environ)
        state.send_at = came
        lane = choose_lane(environ)
        if lane is Lane.FAST and self._engine is None:
            lane = Lane.SLOW
        state.lane = (Lane.SLOW if lane is Lane.MONITORING else lane).value
        if lane is Lane.NONE:
            await _send(_run_at_once(partial(answer, self._django, environ)), None, receive, send)
            return
        caller, credential = self._callers.identify(environ)
        if problem := self._find_excess(environ, lane, caller):
            await _send(self._refuse(environ, problem), None, receive, send)
        else:
            self._in_flight[caller] = self._in_flight.get(caller, 0) + 1
            try:
                response, stream = await self._run(environ, lane, caller, receive)
                self._callers.learn(credential, state)
                if state.send_at != came:
                    # It holds no thread meanwhile.
                    await asyncio.sleep(max(0, (state.send_at or came) - time.monotonic()))
                await _send(response, stream, receive, send)
            except ClientLeft:
                pass
            finally:
                self._in_flight[caller] -= 1
                if not self._in_flight[caller]:
                    del self._in_flight[caller]
        if is_unread:
            await self._bodies.throw_away(receive)

    async def _receive_body(self, environ: Environ, repeated: list[str], receive: Receive) -> bool:
        """Puts the body into the environment, or the refusal of a request that must not be run.

        Returns:
            Whether the client may continue to send a body that is not read: the response is sent meanwhile.
        """
        body = b""
        try:
            if repeated:
                raise invalid(*(Detail(name, "Send this header only once.") for name in repeated))
            screen(environ)
            if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
                limit = find_max_body(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["CONTENT_TYPE"])
                body = await self._bodies.receive(environ, receive, limit)
        except Exception as problem:  # noqa: BLE001 - a DomainError, or a fault of ours: the server's answer has no body
            code = getattr(problem, "code", None)
            # One that waits for `100 Continue` (RFC 9110, section 10.1.1) is answered before it sends so much.
            is_unread = code is ErrorCode.SERVICE_UNAVAILABLE or (
                code is ErrorCode.PAYLOAD_TOO_LARGE and "CONTENT_LENGTH" in environ and "HTTP_EXPECT" not in environ
            )
            refuse(environ, problem)
            return is_unread
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)
        return False

    async def _run(
        self, environ: Environ, lane: Lane, caller: Hashable, receive: Receive
    ) -> tuple[Answer, SlowStream | None]:
        run = partial(answer, self._django, environ)
        if lane is Lane.FAST:
            return await self._engine.run(run, caller), None
        if self._slow is None:
            # Under another server than `serve`.
            return await asyncio.to_thread(Context().run, run), None
        try:
            return await self._slow.run(environ, caller, receive, is_monitoring=lane is Lane.MONITORING)
        except DomainError as problem:
            return self._refuse(environ, problem), None

    def _find_excess(self, environ: Environ, lane: Lane, caller: Hashable) -> DomainError | None:
        """Why a request is not run now."""
        problem = get_state(environ).refused
        if isinstance(problem, DomainError) and problem.code is ErrorCode.SERVICE_UNAVAILABLE:
            return problem
        limit = settings.MAX_IN_FLIGHT
        if limit and self._in_flight.get(caller, 0) >= limit:
            return _build_excess(limit)
        # A flood must not refuse those who send one request at a time.
        most = MAX_RUNNING if caller in self._in_flight else 2 * MAX_RUNNING
        if lane is Lane.FAST and self._engine.running >= most:
            return build_overload("Too many requests are waiting.")
        if environ["REQUEST_METHOD"] not in SAFE_METHODS and problem is None and goes_on_without_primary():
            return build_overload("The database is read-only at the moment.")
        return None

    @staticmethod
    def _refuse(environ: Environ, problem: DomainError) -> Answer:
        metrics.LANE_EVENTS.labels(get_state(environ).lane, "refused").inc()
        return refuse_at_once(environ, problem)


def _run_at_once(run: Callable[[], Answer]) -> Answer:
    """Runs what takes no time in the thread of the loop, as if there were none: Django would refuse it."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return Context().run(run)
    finally:
        asyncio._set_running_loop(loop)


def _is_given_up(alias: str) -> bool:
    """Whether a database is considered lost."""
    if alias == DEFAULT_DB_ALIAS:
        return probe.is_silent or goes_on_without_primary()
    return not get_replicas().is_read(alias)


def _build_excess(limit: int) -> DomainError:
    """draft-ietf-httpapi-ratelimit-headers-10: a policy of its own, in requests that are under way at the same time."""
    headers = {
        "Retry-After": str(RETRY_AFTER_SECONDS),
        "RateLimit-Policy": f'"inflight";q={limit};qu="concurrent-requests"',
        "RateLimit": '"inflight";r=0',
    }
    message = f"Only {limit} requests of a caller can run at the same time. Wait for a response and retry."
    return DomainError(ErrorCode.RATE_LIMITED, message, headers=headers)


# --- What is sent


async def _send(response: Answer, stream: SlowStream | None, receive: Receive, send: Send) -> None:
    headers = [(_encode_name(name), value.encode("latin-1")) for name, value in response.headers]
    if drain.is_on:
        headers.append((b"connection", b"close"))
    try:
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if stream is None or await _send_stream(stream, receive, send):
            await send({"type": "http.response.body", "body": response.body})
    finally:
        if stream is not None:
            await stream.close()


async def _send_stream(stream: SlowStream, receive: Receive, send: Send) -> bool:
    """Sends the pieces of a stream, each when the client has taken the one before it.

    Returns:
        Whether all were sent. Otherwise the response must not seem to end: without its last chunk, the server closes
        the connection.
    """
    # `send` takes what nobody receives.
    leaving = asyncio.ensure_future(wait_until_left(receive))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.MAX_STREAM_SECONDS
    try:
        # A piece is fetched to its end, however long that takes: the channel is used for other requests after this one.
        while piece := await stream.fetch_piece():
            for start in range(0, len(piece), MAX_CHUNK):
                async with asyncio.timeout_at(min(deadline, loop.time() + settings.MAX_STREAM_STALL_SECONDS)):
                    chunk = piece[start : start + MAX_CHUNK]
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if leaving.done():
                    return False
    except (TimeoutError, ConnectionError):
        return False
    finally:
        leaving.cancel()
    return piece is not None


# The service's own.
@lru_cache(maxsize=256)
def _encode_name(name: str) -> bytes:
    return name.lower().encode("latin-1")
