"""Reads the exchanges that the documentation shows: a curl command after `$`, then what it prints."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ANYTHING = "…"
# A heading, or a block of exchanges.
_PART = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```console\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Exchange:
    heading: str
    command: str
    printed: str
    method: str = "GET"
    url: str = ""
    body: bytes = b""
    shows_head: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def expected_body(self) -> Any:
        text = self.printed.partition("\n\n")[2] if self.shows_head else self.printed
        return json.loads(text) if text.strip() else None

    @property
    def expected_status(self) -> int | None:
        return int(self.printed.split()[1]) if self.shows_head else None

    @property
    def expected_headers(self) -> dict[str, str]:
        lines = self.printed.partition("\n\n")[0].splitlines()[1:] if self.shows_head else []
        return dict(line.split(": ", 1) for line in lines)


def exchanges(path: Path, variables: dict[str, str]) -> Iterator[Exchange]:
    """The curl commands of a page, read as a shell and curl would read them."""
    heading = ""
    for part in _PART.finditer(path.read_text()):
        heading = part["heading"] or heading
        for entry in re.split(r"^\$ ", part["block"] or "", flags=re.MULTILINE)[1:]:
            # Between single quotes, a command may have several lines.
            command = re.match(r"(?:[^'\n]|'[^']*')*", entry)[0]
            printed = entry[len(command) + 1 :]
            if command.startswith("curl "):
                yield _read(Exchange(heading.strip("`"), command, printed), variables)


def _read(exchange: Exchange, variables: dict[str, str]) -> Exchange:
    # Split first, as a shell does: what a variable holds may have quotes of its own.
    words = iter(
        re.sub(r"\$(\w+)", lambda name: variables[name[1]], word) for word in shlex.split(exchange.command)[1:]
    )
    for word in words:
        match word:
            case "-i":
                exchange.shows_head = True
            case "-X":
                exchange.method = next(words)
            case "-H":
                name, value = next(words).split(": ", 1)
                exchange.headers[name] = value
            case "-u":
                exchange.headers["Authorization"] = f"Basic {b64encode(next(words).encode()).decode()}"
            case "-d":
                exchange.body = next(words).encode()
                if exchange.method == "GET":
                    exchange.method = "POST"
            case _:
                exchange.url = word
    if exchange.body:
        exchange.headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    return exchange


def matches(expected: Any, found: Any) -> bool:
    """Whether an answer is the one shown; `…` stands for anything, also for a part of a text."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(matches(expected[name], found[name]) for name in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(matches, expected, found))
    if isinstance(expected, str) and ANYTHING in expected:
        pattern = ".*".join(map(re.escape, expected.split(ANYTHING)))
        return expected == ANYTHING or re.fullmatch(pattern, str(found), re.DOTALL) is not None
    return type(expected) is type(found) and expected == found
