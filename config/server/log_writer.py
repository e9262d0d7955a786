"""How the log is written: by a thread of its own, many lines at a time, so that nobody waits for whoever reads it."""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
from collections import deque

from config.server.background import Repetition

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_WRITES = 0.1
# That wait to be written. Whoever reads the log may stop reading. With a trace, one is as long as many others.
MAX_LINES = 20_000
MAX_LONG_LINES = 2_000
# Each piece costs the threads of the process a switch.
MAX_PIECE = 256 * 1024
# At the end, for whoever reads slowly.
SECONDS_TO_STOP = 1.0
_STANDARD_ERROR = 2


class LogWriter:
    """The lines of this process. Once it is started, they are written by a thread, many at a time."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._left_out = 0
        self._repetition: Repetition | None = None

    def start(self) -> None:
        self._repetition = Repetition(self.write, SECONDS_BETWEEN_WRITES, is_called_at_end=True)
        self._repetition.start()

    def stop(self) -> None:
        """Writes what is left, and from then on each line at once; nothing any more where nobody reads it."""
        if self._repetition and self._repetition.stop(SECONDS_TO_STOP):
            self._repetition = None
            # What was added in the meantime.
            self.write()

    def add(self, line: bytes) -> None:
        if self._repetition is None:
            sys.stderr.write(line.decode())
        elif len(self._lines) < (MAX_LINES if len(line) <= select.PIPE_BUF else MAX_LONG_LINES):
            self._lines.append(line)
        else:
            self._left_out += 1

    def write(self) -> None:
        """Writes the lines, to a pipe in pieces that it takes as a whole: other processes write to the same one."""
        piece = bytearray()
        longest = MAX_PIECE if stat.S_ISREG(os.fstat(_STANDARD_ERROR).st_mode) else select.PIPE_BUF
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
            logger.warning("Nobody reads the log: %s lines were left out.", left_out)


class Handler(logging.Handler):
    """Hands the lines of loggers to the writer, beside those of requests."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log.add(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except Exception:  # noqa: BLE001 - as the handlers of logging do
            self.handleError(record)


def _write(content: bytes | bytearray) -> None:
    with memoryview(content) as rest:
        written = 0
        while written < len(rest):
            written += os.write(_STANDARD_ERROR, rest[written:])


log = LogWriter()
