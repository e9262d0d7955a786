"""Runs what the guide shows in Python and JavaScript, and collects what it prints."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import httpx

from config.site import examples
from config.site.examples import Exchange

RUNNER = Path(__file__).with_name("run.mjs")
# That of `make test-clients`, where the machine has none.
NODE_OF_THE_CLIENTS = Path(__file__).resolve().parents[1] / "clients/.venv/bin/node"


class Language(Protocol):
    """A page is run from its first block to its last; what one block defines, the next ones know."""

    def call(self, exchange: Exchange, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        """Runs a command of a page. Returns its status and headers, where these are shown, and its body."""

    def run(self, code: str, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        """Runs a block. Returns what each `print` or `console.log` of it was given."""

    def close(self) -> None: ...


class Shell:
    """The commands as they are printed."""

    name = "curl"
    # It must not ask the proxy of the machine for our own host, and shows no progress.
    PRELUDE = "curl() { command curl --silent --noproxy '*' \"$@\"; }\n"

    def call(self, exchange: Exchange, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        shell = ["bash", "-c", self.PRELUDE + exchange.command]
        done = subprocess.run(
            shell,
            env={**os.environ, **{name: str(value) for name, value in variables.items()}},
            capture_output=True,
            text=True,
            check=True,
        )
        body, printed = done.stdout, []
        if examples.parse_command(exchange.command).shows_head:
            head, _, body = body.partition("\n\n")
            status, *lines = head.splitlines()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            printed = [[int(status.split()[1]), *(headers.get(name.lower()) for name in exchange.shown_headers)]]
        return [*printed, [json.loads(body)]] if exchange.has_body else printed

    def close(self) -> None:
        pass


class Python:
    name = "python"

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"httpx": httpx}

    def call(self, exchange: Exchange, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        return self.run(examples.write_python(exchange), variables)

    def run(self, code: str, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        printed: list[Sequence[Any]] = []
        self.names |= {**variables, "print": lambda *values: printed.append(values)}
        exec(compile(code, "<guide>", "exec"), self.names)  # noqa: S102 - our own pages
        return printed

    def close(self) -> None:
        for value in self.names.values():
            if isinstance(value, httpx.Client) or inspect.isgenerator(value):
                value.close()


class JavaScript:
    """Node, which runs one block after the other."""

    name = "javascript"

    @staticmethod
    def find_node() -> str:
        return shutil.which("node") or str(NODE_OF_THE_CLIENTS)

    def __init__(self) -> None:
        # It must not ask the proxy of the machine for our own host.
        environment = {**os.environ, "NO_PROXY": "127.0.0.1,localhost"}
        self.process = subprocess.Popen(
            [self.find_node(), RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def call(self, exchange: Exchange, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        return self.run(examples.write_javascript(exchange), variables)

    def run(self, code: str, variables: Mapping[str, str]) -> Sequence[Sequence[Any]]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"code": code, "variables": dict(variables)}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "failure" not in answer, (code, answer)
        printed: Sequence[Sequence[Any]] = answer["printed"]
        return printed

    def close(self) -> None:
        # Which ends with its input, and closes both pipes.
        self.process.communicate(timeout=10)


LANGUAGES = (Python.name, JavaScript.name)
