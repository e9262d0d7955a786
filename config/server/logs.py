"""The format of the log: one JSON object a line, on standard error; and how much of it clients can cause.

On a terminal of one's own (settings.COLOURED_LOG), the same is written for people.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Any

import orjson
from django.conf import settings

from config.http.request_state import get_state, present_state

_RESET, _DIM, _GREEN, _YELLOW, _RED = (f"\33[{code}m" for code in (0, 2, 32, 33, 31))
_COLOURS = {"ERROR": _RED, "CRITICAL": _RED, "WARNING": _YELLOW}
# What stands elsewhere in a line for people, or is no help on one's own machine.
_TOLD = {"time", "level", "logger", "message", "exception", "request_id", "traceparent", "method", "route", "status"}


def render(line: Mapping[str, Any]) -> bytes:
    """A line of the log, with its end."""
    if settings.COLOURED_LOG:
        return _render_for_people(line).encode()
    try:
        return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # What a client sends may hold lone surrogates, which are no text.
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
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        # The handler ends the line.
        return render(line).decode().removesuffix("\n")


class RefusalFilter(logging.Filter):
    """Lets one line a second pass of each kind of refusal that Django logs, so that no client can fill the log.

    A foreign Host is such a refusal. The line has no trace, and tells in `left_out` how many before it did not pass.
    """

    def __init__(self) -> None:
        super().__init__("django.security")
        self._lock = Lock()
        # By logger, when a line passed, and how many have not passed since.
        self._passed: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not super().filter(record):
            return True
        now = monotonic()
        with self._lock:
            passed, left_out = self._passed.get(record.name, (now - 1, 0))
            if now - passed < 1:
                self._passed[record.name] = passed, left_out + 1
                return False
            self._passed[record.name] = now, 0
        record.exc_info = None
        record.facts = {"left_out": left_out}
        return True
