"""How the log is written, and that nobody waits for whoever reads it."""

from __future__ import annotations

import logging
import os
import time
from select import PIPE_BUF
from typing import Any

import pytest

from config.server import logs
from config.server.logs import Handler, LogWriter


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The reading end of what a LogWriter of the test writes to, which is the process's own, too."""
    reading, writing = os.pipe()
    monkeypatch.setattr(logs, "log", LogWriter(writing))
    with os.fdopen(reading, "rb") as read, os.fdopen(writing, "wb"):
        yield read


def test_lines_are_written_in_pieces_that_a_pipe_takes_as_a_whole(pipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []
    write = os.write
    monkeypatch.setattr(logs.os, "write", lambda file, data: pieces.append(bytes(data)) or write(file, data))
    log = logs.log
    log.start()
    sent = [b"%d %s\n" % (number, b" " * 300) for number in range(100)] + [b" " * (PIPE_BUF + 1) + b"\n"]
    for line in sent:
        log.add(line)
    log.stop()
    assert b"".join(pieces) == b"".join(sent)
    assert all(len(piece) <= PIPE_BUF for piece in pieces[:-1])
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert len(pieces) < 12


def test_lines_that_nobody_reads_are_left_out_and_counted(
    pipe: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 4)
    log = logs.log
    # No thread that writes meanwhile.
    monkeypatch.setattr(log, "_repetition", object())
    for number in range(5):
        log.add(b"%d\n" % number)
    log.write()
    assert os.read(pipe.fileno(), 100) == b"0\n1\n2\n"
    assert "2 lines were left out" in caplog.text


def test_nobody_waits_for_who_has_stopped_to_read(pipe: Any) -> None:
    log = logs.log
    log.start()
    began = time.monotonic()
    # A row of letters is a password in other tests, and would be a secret in the log.
    record = logging.LogRecord("service", logging.ERROR, __file__, 1, " " * 4000, None, None)
    for _ in range(100):
        Handler().handle(record)
        time.sleep(0.005)
    log.stop()
    log.add(b"After the end.\n")
    assert time.monotonic() - began < 3
    # Once somebody reads again, the thread ends, and has written whole lines.
    os.set_blocking(pipe.fileno(), False)
    written = b""
    while log._repetition and not log._repetition.stop(0.01):
        written += pipe.read() or b""
    assert written.startswith(b" " * 4000 + b"\n")


def test_line_of_a_logger_that_no_utf_8_can_write_is_written(pipe: Any) -> None:
    log = logs.log
    log.start()
    Handler().handle(logging.LogRecord("service", logging.ERROR, __file__, 1, "half: \ud800", None, None))
    log.stop()
    assert os.read(pipe.fileno(), 100) == b"half: \\ud800\n"
