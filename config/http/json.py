"""The JSON of requests and responses: strict where the standard library is lenient, exact where it rounds."""

import gc
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import orjson

from config.http.errors import Detail, DomainError, ErrorCode

# Its members come from outside, or differ from one object to the next.
JSONObject = dict[str, Any]

MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 40
MAX_EXPONENT = 20

# What a body may hold besides the text of its strings: each number, name and bracket costs far more time than a
# character of a long text.
MAX_STRUCTURE = 16 * 1024

# For NDJSON. All lines together may hold as much besides text as a thousand flat objects need.
MAX_LINES = 1_000
MAX_STRUCTURE_OF_LINES = 4 * MAX_STRUCTURE

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


# Compared by identity, and not frozen, which would cost half of the time to make one.
@dataclass(slots=True, eq=False)
class UnusableNumber:
    """A number too long or too far out to be converted: `int()` and `Decimal` take minutes over some.

    The parser leaves it in place as it was sent, so that its field can refuse it by name.

    Attributes:
        token: as it was sent.
    """

    token: str


@dataclass(slots=True, eq=False)
class RefusedLine:
    """A line that is no JSON object, or holds too much besides text.

    Attributes:
        content: as it was sent.
    """

    content: bytes
    problem: DomainError


def _integer(token: str) -> int | UnusableNumber:
    return int(token) if len(token) <= MAX_NUMBER_CHARACTERS else UnusableNumber(token)


def _decimal(token: str) -> Decimal | UnusableNumber:
    if len(token) > MAX_NUMBER_CHARACTERS:
        return UnusableNumber(token)
    try:
        number = Decimal(token)
    except InvalidOperation:
        # An exponent beyond the range of Decimal.
        return UnusableNumber(token)
    # A body may hold thousands of numbers. Of most of them the exponent need not be looked at: from the place of the
    # first digit it is not farther away than the number has characters.
    if abs(number.adjusted()) + len(token) <= MAX_EXPONENT:
        return number
    exponent = int(token.lower().partition("e")[2] or 0)
    return number if -MAX_EXPONENT <= exponent <= MAX_EXPONENT else UnusableNumber(token)


def _constant(token: str) -> NoReturn:
    raise malformed(f"{token} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> JSONObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise malformed("an object has two members of the same name")
    return members


def _is_too_deep(structure: bytes) -> bool:
    """Whether brackets nest too deeply; each round removes the innermost ones, in linear time."""
    brackets = structure.translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    # Those that are left without being a pair are the decoder's to complain about.
    return b"[]" in brackets


def _get_structure(body: bytes) -> bytes:
    """A body with every string empty."""
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Quotes are counted first, since a list of very many strings takes long to make.
    return b'""'.join(body.split(b'"')[::2]) if body.count(b'"') <= MAX_STRUCTURE else body


def _check_structure(body: bytes) -> None:
    """Refuses what takes long to decode, whatever is in it."""
    # Few brackets cannot nest deeply, and a short body has no long structure.
    if len(body) <= MAX_STRUCTURE and body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    structure = _get_structure(body)
    if len(structure) > MAX_STRUCTURE:
        message = f"Without its string values, the body exceeds {MAX_STRUCTURE} bytes."
        raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, message)
    if _is_too_deep(structure):
        raise malformed(f"it is nested more than {MAX_DEPTH} levels deep")


def malformed(reason: str) -> DomainError:
    return DomainError(ErrorCode.MALFORMED_JSON, f"The body is not a JSON object: {reason}.")


def parse_json(body: bytes) -> JSONObject:
    """Reads a request body.

    Returns the object at its top, with every fractional number as a Decimal.

    Raises:
        DomainError: MALFORMED_JSON for everything that contract section 5 calls malformed, PAYLOAD_TOO_LARGE for a
            body that holds too much besides text.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        raise malformed("it starts with a byte order mark (RFC 8259, section 8.1)")
    if not body.strip(b" \t\r\n"):
        raise malformed("it is empty")
    _check_structure(body)
    # While a body is decoded everything that is made stays: looking for garbage in it trebles the time.
    gc.disable()
    try:
        value = _decoder.decode(body.decode())
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None
    except RecursionError:
        raise malformed(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    finally:
        gc.enable()
    if not isinstance(value, dict):
        raise malformed("its top-level value is not an object")
    return value


def parse_json_lines(body: bytes) -> list[JSONObject | RefusedLine]:
    """Reads a body of JSON objects, one a line, each by the rules of a whole body (`parse_json`).

    Raises:
        DomainError: PAYLOAD_TOO_LARGE for the lines together.
    """
    lines = body.removesuffix(b"\n").split(b"\n", MAX_LINES)
    if len(lines) > MAX_LINES:
        message = f"The body has more than {MAX_LINES} lines. Split it into several requests."
        raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, message)
    if len(body) > MAX_STRUCTURE_OF_LINES and sum(map(len, map(_get_structure, lines))) > MAX_STRUCTURE_OF_LINES:
        message = f"Without their string values, the lines exceed {MAX_STRUCTURE_OF_LINES} bytes."
        raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, message)
    return [_parse_line(line) for line in lines]


def _parse_line(line: bytes) -> JSONObject | RefusedLine:
    try:
        return parse_json(line)
    except DomainError as problem:
        return RefusedLine(line, DomainError(problem.code, problem.message.replace("body", "line", 1)))


def refuse_lines(lines: Sequence[JSONObject | RefusedLine]) -> None:
    """Raises DomainError, a MALFORMED_JSON or PAYLOAD_TOO_LARGE, that names every line which is refused: `lines[1]`."""
    refused = [(number, line) for number, line in enumerate(lines, start=1) if isinstance(line, RefusedLine)]
    if not refused:
        return
    details = [Detail(name_line(number), line.problem.message) for number, line in refused]
    if any(line.problem.code is ErrorCode.PAYLOAD_TOO_LARGE for _, line in refused):
        raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, "A line is too large. See details.", details)
    raise DomainError(ErrorCode.MALFORMED_JSON, "Each line must be a JSON object. See details.", details)


def name_line(number: int, field: str = "") -> str:
    """How an error names a line of the body, which are counted from 1, or a field in it."""
    return ".".join(filter(None, (f"lines[{number}]", field)))


_decoder = json.JSONDecoder(
    parse_int=_integer, parse_float=_decimal, parse_constant=_constant, object_pairs_hook=_unique
)


def to_json(data: object) -> bytes:
    """The bytes of a value: times as RFC 3339 in UTC with `Z`, decimals as JSON numbers digit by digit.

    Raises:
        TypeError: the value holds something that has no JSON form.
    """
    return orjson.dumps(data, default=_exact, option=orjson.OPT_UTC_Z)


def _exact(value: object) -> orjson.Fragment:
    # Never through a binary float.
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(f"{type(value).__name__} has no JSON form")
