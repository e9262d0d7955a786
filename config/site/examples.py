"""The examples of the guide, which are curl commands, as the same calls in Python (httpx) and JavaScript (fetch)."""

import json
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

LANGUAGES = {"curl": "curl", "python": "Python", "javascript": "JavaScript"}
_VARIABLE = re.compile(r"\$([A-Z_]+)")
_ASSIGNMENT = re.compile(r"export (?P<name>\w+)=(?P<value>.*)")
# Between single quotes, a command may have several lines.
_EXCHANGE = re.compile(
    r"^\$ (?P<command>(?:[^'\n]|'[^']*')*)\n"
    r"(?P<printed>(?P<head>HTTP/(?:(?!\$ ).+\n)+\n?)?(?P<body>(?:(?!\$ ).*\n)*))",
    re.MULTILINE,
)
# As wide as a line of code is on a page.
_WIDTH = 82
# A text in JSON, or what Python writes otherwise.
_JSON_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|true|false|null')
_PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}


_CURL = ArgumentParser()
_CURL.add_argument("url")
_CURL.add_argument("-i", dest="shows_head", action="store_true")
_CURL.add_argument("-X", dest="method")
_CURL.add_argument("-H", dest="headers", action="append", default=[])
_CURL.add_argument("-u", dest="login")
_CURL.add_argument("-d", dest="data")


class Call(NamedTuple):
    """A curl command. In its texts, `$NAME` is a variable.

    Attributes:
        body: an object, a text that is no JSON, or None.
        form: the fields of a form.
        shows_head: whether status and headers are printed, too.
    """

    method: str
    url: str
    headers: dict[str, str]
    login: Sequence[str]
    body: object
    form: dict[str, str] | None
    shows_head: bool


class Exchange(NamedTuple):
    """A command, and what it prints: the head of an answer, if it does, and the body."""

    command: str
    printed: str
    head: str
    body: str

    @property
    def is_call(self) -> bool:
        return self.command.startswith("curl ")

    @property
    def shown_headers(self) -> list[str]:
        return [line.partition(":")[0] for line in self.head.splitlines()[1:] if line]

    @property
    def has_body(self) -> bool:
        return bool(self.body.strip())


def read_session(text: str) -> Iterator[Exchange]:
    """The exchanges of a console session."""
    for match in _EXCHANGE.finditer(text):
        yield Exchange(**match.groupdict(""))


def parse_command(command: str) -> Call:
    """Reads a command as a shell and curl would."""
    given = _CURL.parse_args(shlex.split(command)[1:])
    headers = dict(header.split(": ", 1) for header in given.headers)
    login = given.login.split(":", 1) if given.login else ()
    method = given.method or ("GET" if given.data is None else "POST")
    body, form = (None, None) if given.data is None else _read_body(given.data, headers)
    return Call(method, given.url, headers, login, body, form, given.shows_head)


def _read_body(text: str, headers: Mapping[str, str]) -> tuple[object, dict[str, str] | None]:
    """The body, or the fields of a form."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if "Content-Type" in headers:
        return value, None
    # curl says that it is a form: neither JSON, nor what a form looks like.
    return (None, dict(parse_qsl(text))) if value is text else (text, None)


def write_python(exchange: Exchange) -> str:
    """The call with httpx, and what the command prints."""
    call = parse_command(exchange.command)
    headers = dict(call.headers)
    arguments = [_quote_python(call.url)]
    if isinstance(call.body, dict) and headers.get("Content-Type") == "application/json":
        del headers["Content-Type"]
    if headers:
        arguments.append(f"headers={_write_python_value(headers)}")
    if call.login:
        arguments.append(f"auth=({', '.join(map(_quote_python, call.login))})")
    if call.form is not None:
        arguments.append(f"data={_write_python_value(call.form)}")
    elif isinstance(call.body, str):
        arguments.append(f"content={_quote_python(call.body)}")
    elif call.body is not None:
        arguments.append(f"json={_write_python_value(call.body)}")
    shown = ["answer.status_code"] if call.shows_head else []
    shown += [f"answer.headers[{json.dumps(name)}]" for name in exchange.shown_headers]
    lines = [_fill(f"answer = httpx.{call.method.lower()}(", arguments, ")")]
    if shown:
        lines.append(_fill("print(", shown, ")"))
    if exchange.has_body:
        lines.append("print(answer.json())")
    return "\n".join(lines) + "\n"


def write_javascript(exchange: Exchange) -> str:
    """The call with fetch, and what the command prints."""
    call = parse_command(exchange.command)
    headers = {_quote_javascript_name(name): _quote_javascript(value) for name, value in call.headers.items()}
    lines = []
    if call.login:
        # `btoa` takes characters for bytes, and refuses those beyond Latin-1.
        lines.append(f"const bytes = new TextEncoder().encode({_quote_javascript(':'.join(call.login))})")
        headers["Authorization"] = '"Basic " + btoa(String.fromCharCode(...bytes))'
    options = [f'method: "{call.method}"'] if call.method != "GET" else []
    if headers:
        options.append(f"headers: {{ {', '.join(f'{name}: {value}' for name, value in headers.items())} }}")
    if call.form is not None:
        options.append(f"body: new URLSearchParams({_write_javascript_value(call.form)})")
    elif isinstance(call.body, str):
        options.append(f"body: {_quote_javascript(call.body)}")
    elif call.body is not None:
        options.append(f"body: JSON.stringify({_write_javascript_value(call.body)})")
    shown = ["answer.status"] if call.shows_head else []
    shown += [f"answer.headers.get({json.dumps(name)})" for name in exchange.shown_headers]
    address = _quote_javascript(call.url)
    first = f"const answer = await fetch({address}"
    lines.append(_fill(f"{first}, {{ ", options, " })", indent=2) if options else f"{first})")
    if shown:
        lines.append(_fill("console.log(", shown, ")", indent=2))
    if exchange.has_body:
        lines.append("console.log(await answer.json())")
    return "\n".join(lines) + "\n"


def write_settings(text: str) -> Mapping[str, str] | None:
    """The variables that `export` lines set, in each language; None for any other text."""
    lines = [_ASSIGNMENT.fullmatch(line) for line in text.splitlines()]
    if not lines or not all(lines):
        return None
    values = [(line["name"], line["value"]) for line in lines if line]
    return {
        "curl": text,
        "python": "import httpx\n\n" + "".join(f"{name} = {_quote_python(value)}\n" for name, value in values),
        "javascript": "".join(f"const {name} = {_quote_javascript(value)}\n" for name, value in values),
    }


def _fill(opening: str, parts: list[str], closing: str, indent: int = 4) -> str:
    """A line, or one for each part where it would be too long."""
    line = opening + ", ".join(parts) + closing
    if len(line) <= _WIDTH:
        return line
    inner = "".join(f"{' ' * indent}{part},\n" for part in parts)
    return f"{opening.rstrip()}\n{inner}{closing.strip()}"


def _quote_python(text: str) -> str:
    if whole := _VARIABLE.fullmatch(text):
        return whole[1]
    quoted = json.dumps(text, ensure_ascii=False)
    if not _VARIABLE.search(text):
        return quoted
    return "f" + _VARIABLE.sub(r"{\1}", quoted.replace("{", "{{").replace("}", "}}"))


def _quote_javascript(text: str) -> str:
    if whole := _VARIABLE.fullmatch(text):
        return whole[1]
    if not _VARIABLE.search(text):
        return json.dumps(text, ensure_ascii=False)
    return "`" + _VARIABLE.sub(r"${\1}", text.replace("\\", "\\\\").replace("`", "\\`")) + "`"


def _quote_javascript_name(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _write_python_value(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return _JSON_WORD.sub(lambda word: _PYTHON_WORDS.get(word[0]) or _quote_python(json.loads(word[0])), written)


def _write_javascript_value(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return _JSON_WORD.sub(
        lambda word: _quote_javascript(json.loads(word[0])) if word[0][0] == '"' else word[0], written
    )
