"""The log: one JSON object a line, on standard error, written by a thread of its own, many lines at a time.

Each request that was answered has a line. It says who asked for what from where, by which kind of credential, and what
it cost: the route and no path, the id of a user and no credential. No secret can come into it.

On your own terminal (settings.COLOURED_LOG), the same is written for people.
"""

import json
import logging
import os
import re
import select
import stat
import sys
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from config.http.client_address import find_address
from config.http.request_state import RequestState, get_state, present_state
from config.server.background import SECONDS_TO_STOP, Repetition

logger = logging.getLogger(__name__)

NAME = "request"
SECONDS_BETWEEN_WRITES = 0.1
# Lines that wait to be written: the reader of the log may have stopped reading.
MAX_BYTES = 16 * 1024 * 1024
# W3C Trace Context, section 3.2. A later version begins with the known parts.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?=-|\Z)")
_RESET, _DIM, _GREEN, _YELLOW, _RED = (f"\33[{code}m" for code in (0, 2, 32, 33, 31))
_COLOURS = {"ERROR": _RED, "CRITICAL": _RED, "WARNING": _YELLOW}
# Fields that are elsewhere in a line for people, or do not help on your own machine.
_TOLD = {"time", "level", "logger", "message", "exception", "request_id", "traceparent", "method", "route", "status"}


class Answered(NamedTuple):
    """What is logged about a request that was answered.

    Attributes:
        environ: its WSGI environment.
        state: its state.
        status: of the answer.
        headers: of the answer.
        route: the template of its address; `none` where it leads nowhere.
        method: `OTHER` where HTTP knows none of this name.
        seconds: that it took.
        request: Django's, where it was looked at.
    """

    environ: Mapping[str, Any]
    state: RequestState
    status: int
    headers: Mapping[str, str]
    route: str
    method: str
    seconds: float
    request: Any


def log_answer(answered: Answered) -> None:
    """Writes the line of a request."""
    environ, state, status, headers, route, method, seconds, request = answered
    user, kind = _find_principal(state, request)
    traceparent = _TRACEPARENT.match(environ.get("HTTP_TRACEPARENT", ""))
    line = {
        "time": datetime.now(UTC),
        "level": "INFO" if status < 500 else "ERROR",
        "logger": NAME,
        "request_id": headers.get("Request-Id"),
        "traceparent": traceparent and traceparent[0],
        "method": method,
        "route": route,
        "status": status,
        "principal": user,
        "kind": kind,
        "version": headers.get("API-Version"),
        "bytes": int(headers.get("Content-Length") or 0),
        "duration_ms": int(1_000_000 * seconds) / 1000,
        "database_ms": int(1_000_000 * state.spent.seconds) / 1000,
        "statements": state.spent.statements,
        "replayed": "Idempotent-Replayed" in headers,
        "lane": state.lane,
    }
    if settings.LOG_CLIENT_ADDRESS:
        forwarded, remote = environ.get("HTTP_X_FORWARDED_FOR"), environ.get("REMOTE_ADDR", "")
        line["address"] = str(find_address(forwarded, remote, settings.TRUSTED_PROXIES))
    log.add(render(line))


def _find_principal(state: RequestState, request: Any) -> tuple[int | None, str | None]:
    """The id of the user who asks, and the kind of the credential."""
    if state.principal is not None:
        return state.principal.user.id, state.principal.kind
    # The user of a page, if it was accessed (django.contrib.auth.middleware).
    user = getattr(request, "_cached_user", None)
    return (None, None) if user is None or user.pk is None else (user.pk, "session")


def render(line: Mapping[str, Any]) -> bytes:
    """A line of the log, with its end."""
    if settings.COLOURED_LOG:
        return _render_for_people(line).encode()
    try:
        return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # A client may have sent lone surrogates, which cannot be encoded.
        return f"{json.dumps(line, default=str)}\n".encode()


def _render_for_people(line: Mapping[str, Any]) -> str:
    said = line.get("message") or f"{line['method']} {line['route']} {line['status']}"
    colour = _COLOURS.get(line["level"], "")
    if "status" in line:
        colour = _GREEN if line["status"] < 400 else _YELLOW if line["status"] < 500 else _RED
    rest = " ".join(f"{name}={value}" for name, value in line.items() if name not in _TOLD and value not in (None, ""))
    exception = f"\n{line['exception']}" if "exception" in line else ""
    time = line["time"].astimezone().strftime("%H:%M:%S")
    return f"{_DIM}{time} {line['logger']}{_RESET} {colour}{said}{_RESET} {_DIM}{rest}{_RESET}{exception}\n"


class Formatter(logging.Formatter):
    """Formats a record with the Request-Id of the current request and the fields of `facts` in its `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        # Django logs a status after the request, and passes the request in `extra`.
        environ = getattr(getattr(record, "request", None), "META", None)
        state = present_state.get() if environ is None else get_state(environ)
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "request_id": state and state.request_id,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        # Clients cause refusals, of a foreign Host for example: without a trace, a line is no longer than their own.
        if record.exc_info and not record.name.startswith("django.security"):
            line["exception"] = self.formatException(record.exc_info)
        # The handler ends the line.
        return render(line).decode().removesuffix("\n")


class LogWriter:
    """The lines of this process. Once it is started, they are written by a thread, many at a time.

    Args:
        file: the descriptor that they are written to.
    """

    def __init__(self, file: int = 2) -> None:
        self._file = file
        self._lines: deque[bytes] = deque()
        self._size = self._left_out = 0
        self._repetition: Repetition | None = None

    def start(self) -> None:
        self._repetition = Repetition(self.write, SECONDS_BETWEEN_WRITES, is_called_at_end=True)
        self._repetition.start()

    def stop(self) -> None:
        """Writes the remaining lines, and from then on each line at once; none if nobody reads the log."""
        if self._repetition and self._repetition.stop(SECONDS_TO_STOP):
            self._repetition = None
            # Lines added in the meantime.
            self.write()

    def add(self, line: bytes) -> None:
        if self._repetition is None:
            sys.stderr.write(line.decode())
        elif self._size <= MAX_BYTES:
            self._size += len(line)
            self._lines.append(line)
        else:
            self._left_out += 1

    def write(self) -> None:
        """Writes the lines, to a pipe in pieces that it takes as a whole: other processes write to the same one."""
        piece = bytearray()
        longest = MAX_BYTES if stat.S_ISREG(os.fstat(self._file).st_mode) else select.PIPE_BUF
        self._size = 0
        while self._lines:
            line = self._lines.popleft()
            if piece and len(piece) + len(line) > longest:
                self._write(piece)
            piece += line
        self._write(piece)
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            logger.warning("Nobody reads the log: %s lines were left out.", left_out)

    def _write(self, content: bytearray) -> None:
        """Writes the content, and leaves nothing of it."""
        while content:
            del content[: os.write(self._file, content)]


log = LogWriter()


class Handler(logging.Handler):
    """Passes the lines of loggers to the writer of request lines."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log.add(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except Exception:  # noqa: BLE001 - as the handlers of logging do
            self.handleError(record)
