"""A plugin of pytest: no secret that the tests used stands in a log.

Whatever Django's test client sends and receives is looked through for secrets: passwords, keys, tokens, codes, cookies.
What the service's own formatter writes is kept. When the tests are over, each secret is looked for in what was written;
one that is found there fails the run, which names the test and the logger, and not the secret. Each worker of
pytest-xdist looks through its own, and tells the process that started it.
"""

from __future__ import annotations

import json
import logging
import os
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote_plus, urlsplit

import pytest
from django.conf import settings
from django.db import connection
from django.test.client import RequestFactory

from config.server.logs import NAME, Formatter, LogWriter

FIELDS = {
    *(
        "password",
        "current_password",
        "password_hash",
        "password1",
        "password2",
        "key",
        "access_token",
        "refresh_token",
    ),
    *("client_secret", "token", "code_verifier"),
}
# In an address or a form; in JSON it is the code of an error.
PARAMETERS = {*FIELDS, "api_key", "code"}
HEADERS = {"authorization", "x-api-key"}
# What is shorter stands in a log by chance: `none`, a digit, a name, a row of blanks.
LEAST_CHARACTERS = 12
# To look for each secret in the whole log would take longer with each test. So a text is cut into blocks of six
# characters. Wherever a secret stands in it, one block is whole within the last eleven of the secret's: one that has
# none there is not in it.
BLOCK = 6
RECORDS_AT_ONCE = 10_000


class Watch:
    """What one process has seen.

    Attributes:
        secrets: what each is, by the secret.
        written: the test, the logger and the text of everything that was logged.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.written: list[tuple[str, str, str]] = []

    def note(self, secret: Any, what: str) -> None:
        if isinstance(secret, str) and len(secret.strip()) >= LEAST_CHARACTERS:
            self.secrets.setdefault(secret, what)

    def record(self, logger: str, text: str) -> None:
        self.written.append((os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0], logger, text))

    def leaks(self) -> list[str]:
        sought = [(form, what, ending(form)) for secret, what in self.secrets.items() for form in forms(secret)]
        found = set()
        for begin in range(0, len(self.written), RECORDS_AT_ONCE):
            records = self.written[begin : begin + RECORDS_AT_ONCE]
            everything = "\n".join(text for _, _, text in records)
            blocks = {everything[at : at + BLOCK] for at in range(0, len(everything), BLOCK)}
            for form, what, parts in sought:
                if not blocks.isdisjoint(parts) and form in everything:
                    found |= {(test, logger, what) for test, logger, text in records if form in text}
        return sorted(f"{test}: the logger {logger} wrote a secret ({what})" for test, logger, what in found)


watch = Watch()


def forms(secret: str) -> set[str]:
    """The secret as it may be written: as it is, in an address, in JSON."""
    # Half of a surrogate pair, which JSON may escape, is a character that UTF-8 refuses.
    octets = secret.encode(errors="surrogatepass")
    return {secret, quote(octets, safe=""), quote_plus(octets), json.dumps(secret, ensure_ascii=False)[1:-1]}


def ending(form: str) -> set[str]:
    """The parts of which one is a block of each text that has the form."""
    return {form[at : at + BLOCK] for at in range(len(form) - 2 * BLOCK + 1, len(form) - BLOCK + 1)}


def commit() -> None:
    """Runs what waits for a commit, which the transaction around a test never sees: lines of the log, above all."""
    waiting, connection.run_on_commit = connection.run_on_commit, []
    for _, run, _ in waiting:
        run()


def look_through(path: str, data: Any, headers: Mapping[str, Any], client: Any, response: Any) -> None:
    """Gathers the secrets of one exchange."""
    for name, value in _parameters(urlsplit(path).query):
        watch.note(value, name)
    for name, value in headers.items():
        if name.lower().replace("_", "-").removeprefix("http-") in HEADERS:
            _gather_from_header(name, str(value))
    for body in (data, getattr(response, "content", b"") if not getattr(response, "streaming", False) else b""):
        _gather_from_body(body)
    if getattr(response, "has_header", None) and response.has_header("Location"):
        for name, value in _parameters(urlsplit(response["Location"]).query):
            watch.note(value, name)
    for cookie in getattr(client, "cookies", {}).values():
        watch.note(cookie.value, f"the cookie {cookie.key}")


def _gather_from_header(name: str, header: str) -> None:
    for part in header.split(","):
        scheme, _, value = part.strip().rpartition(" ")
        watch.note(value, name)
        if scheme.lower() == "basic":
            try:
                _, _, secret = b64decode(value).decode().partition(":")
            except ValueError:
                continue
            watch.note(secret, "password or client secret")
            watch.note(unquote_plus(secret), "password or client secret")


def _gather_from_body(body: Any) -> None:
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    if not any(name in text for name in PARAMETERS):
        # Tests measure how long a body of a mebibyte takes, and would measure this with it.
        return
    if text.startswith(("{", "[")):
        try:
            for name, value in _members(json.loads(text)):
                watch.note(value, name)
        except (ValueError, RecursionError):
            return
    elif "=" in text and "\n" not in text:
        for name, value in _parameters(text):
            watch.note(value, name)


def _parameters(text: str) -> list[tuple[str, str]]:
    try:
        return [(name, value) for name, value in parse_qsl(text) if name in PARAMETERS]
    except ValueError:
        return []


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in FIELDS:
                yield name, inner
            # The trail names a key by its prefix, which stands in the log, too.
            if name != "facts":
                yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)


def pytest_sessionstart(session: pytest.Session) -> None:
    for name in ("SECRET_KEY", "JWT_SIGNING_KEY"):
        watch.note(getattr(settings, name), name)
    write = Formatter.format

    # The handlers are no place for it: whoever calls `django.setup()` again gets new ones.
    def recorded(self: Formatter, record: logging.LogRecord) -> str:
        text = write(self, record)
        watch.record(record.name, text)
        return text

    Formatter.format = recorded  # type: ignore[method-assign]
    add = LogWriter.add

    def recorded_line(self: LogWriter, line: bytes) -> None:
        watch.record(NAME, line.decode())
        add(self, line)

    LogWriter.add = recorded_line  # type: ignore[method-assign]
    send = RequestFactory.generic

    def watched(self: Any, method: str, path: str, data: Any = "", *args: Any, **options: Any) -> Any:
        response = send(self, method, path, data, *args, **options)
        commit()
        headers = {**(options.get("headers") or {}), **self.defaults, **options}
        look_through(str(path), data, headers, self, response)
        return response

    RequestFactory.generic = watched  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    commit()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    found = [*session.config.stash.get(LEAKS, []), *watch.leaks()]
    session.config.stash[LEAKS] = found
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["leaks"] = found
    elif found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """A worker of pytest-xdist is done, which swallows what is raised while its session finishes."""
    nothing = [f"{node.gateway.id}: its log was not looked through"]
    node.config.stash.setdefault(LEAKS, []).extend(getattr(node, "workeroutput", {}).get("leaks", nothing))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = config.stash.get(LEAKS, [])
    if found:
        terminalreporter.section("secrets in the log", red=True)
        for line in found:
            terminalreporter.write_line(line)


LEAKS = pytest.StashKey[list[str]]()
