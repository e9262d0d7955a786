"""The log of a service, read again when the service has ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any


def read_log(log: Path) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects: what is printed at the start is none, and the last one may be cut off."""
    with log.open(errors="replace") as lines:
        for text in lines:
            with suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict):
                    yield line
