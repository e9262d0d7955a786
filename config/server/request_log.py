"""A line in the log for each request that was answered.

It says who asked for what, by which kind of credential, and what it cost: the route and no address, the id of a user
and no credential. No secret can come into it.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from random import random
from select import PIPE_BUF
from typing import Any

from django.conf import settings

from config.postgresql.statements import Spent
from config.server.background import Repetition
from config.server.logs import render

logger = logging.getLogger(__name__)

# Where the environment of a request holds the lane that it runs in.
LANE = "config.lane"
NAME = "request"
SECONDS_BETWEEN_WRITES = 0.1
# That wait to be written. Whoever reads the log may stop reading, and no request waits for that.
MAX_LINES = 20_000
# Each piece costs the threads of the process a change of turns.
MAX_PIECE = 256 * 1024
# W3C Trace Context, section 3.2. Of a later version, what is known stands in front.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?=-|\Z)")
_STANDARD_ERROR = 2
_NOTHING = Spent()


def log_answer(
    environ: Mapping[str, Any],
    status: int,
    headers: Mapping[str, str],
    *,
    route: str,
    method: str,
    seconds: float,
    spent: Spent = _NOTHING,
    request: Any = None,
) -> None:
    """Writes the line of a request.

    Args:
        environ: its WSGI environment.
        status: of the answer.
        headers: of the answer.
        route: the template of its address.
        method: of the request, if it is one that HTTP knows.
        seconds: that it took.
        spent: what it asked of the database.
        request: Django's, where it was looked at.
    """
    share = settings.LOG_SUCCESSES if status < 300 else 1.0
    if share < 1 and random() >= share:  # noqa: S311 - a sample
        return
    user, kind = (None, None) if request is None else _find_principal(request)
    traceparent = environ.get("HTTP_TRACEPARENT")
    if traceparent is not None:
        known = _TRACEPARENT.match(traceparent)
        traceparent = known[0] if known else None
    log.add(
        render(
            {
                "time": datetime.now(UTC),
                "level": "INFO" if status < 500 else "ERROR",
                "logger": NAME,
                "request_id": headers.get("Request-Id"),
                "traceparent": traceparent,
                "method": method,
                "route": route,
                "status": status,
                "principal": user,
                "kind": kind,
                "version": headers.get("API-Version"),
                "bytes": int(headers.get("Content-Length") or 0),
                "duration_ms": int(1_000_000 * seconds) / 1000,
                "database_ms": int(1_000_000 * spent.seconds) / 1000,
                "statements": spent.statements,
                "replayed": "Idempotent-Replayed" in headers,
                "lane": environ.get(LANE),
            }
        )
    )


def _find_principal(request: Any) -> tuple[int | None, str | None]:
    """The id of the user who asks, and the kind of the credential."""
    principal = getattr(request, "principal", None)
    if principal is not None:
        return principal.user.id, principal.kind
    # Of a page, where it was looked at (django.contrib.auth.middleware).
    user = getattr(request, "_cached_user", None)
    return (None, None) if user is None or user.pk is None else (user.pk, "session")


class RequestLog:
    """The lines of this process. Once it is started, they are written by a thread, many at a time."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._left_out = 0
        self._repetition: Repetition | None = None

    def start(self) -> None:
        self._repetition = Repetition(self.write, SECONDS_BETWEEN_WRITES)
        self._repetition.start()

    def stop(self) -> None:
        """Writes what is left, and from then on each line at once."""
        if self._repetition:
            self._repetition.stop()
            self._repetition = None
        self.write()

    def add(self, line: bytes) -> None:
        if self._repetition is None:
            sys.stderr.write(line.decode())
        elif len(self._lines) < MAX_LINES:
            self._lines.append(line)
        else:
            self._left_out += 1

    def write(self) -> None:
        """Writes the lines, to a pipe in pieces that it takes as a whole: other processes write to the same one."""
        piece = bytearray()
        longest = MAX_PIECE if stat.S_ISREG(os.fstat(_STANDARD_ERROR).st_mode) else PIPE_BUF
        while self._lines:
            line = self._lines.popleft()
            if piece and len(piece) + len(line) > longest:
                _write(piece)
                piece.clear()
            piece += line
        if piece:
            _write(piece)
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            logger.warning("Nobody reads the log: %s lines of requests were left out.", left_out)


def _write(content: bytes | bytearray) -> None:
    with memoryview(content) as rest:
        written = 0
        while written < len(rest):
            written += os.write(_STANDARD_ERROR, rest[written:])


log = RequestLog()
