"""The JSON of requests and responses: strict where the standard library is lenient, exact where it rounds."""

import gc
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from config.http.errors import DomainError, ErrorCode

MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 40
MAX_EXPONENT = 20

# One without its end matches too: else each quote in it would be tried as a beginning.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


@dataclass(frozen=True, slots=True)
class UnusableNumber:
    """A number too long or too far out to be converted: `int()` and `Decimal` take minutes over some.

    The parser leaves it in place as it was sent, so that the field it stands in can refuse it by name.
    """

    token: str


class _MalformedError(ValueError):
    pass


def _integer(token: str) -> int | UnusableNumber:
    return int(token) if len(token) <= MAX_NUMBER_CHARACTERS else UnusableNumber(token)


def _decimal(token: str) -> Decimal | UnusableNumber:
    exponent = token.lower().partition("e")[2]
    if len(token) > MAX_NUMBER_CHARACTERS or abs(int(exponent or 0)) > MAX_EXPONENT:
        return UnusableNumber(token)
    return Decimal(token)


def _constant(token: str) -> Any:
    raise _MalformedError(f"{token} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _MalformedError("an object has two members of the same name")
    return members


def _too_deep(body: bytes) -> bool:
    """Whether brackets nest too deeply; each round takes away the innermost ones, in linear time."""
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    # Those that are left without being a pair are the decoder's to complain about.
    return b"[]" in brackets


def malformed(reason: str) -> DomainError:
    return DomainError(ErrorCode.MALFORMED_JSON, f"The body is not a JSON object: {reason}.")


def parse_json(body: bytes) -> dict[str, Any]:
    """Reads a request body.

    Returns the object at its top, with every fractional number as a Decimal.

    Raises:
        DomainError: MALFORMED_JSON for everything that contract section 5 calls malformed.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        raise malformed("it starts with a byte order mark (RFC 8259, section 8.1)")
    if not body.strip(b" \t\r\n"):
        raise malformed("it is empty")
    # Few brackets cannot nest deeply: the count is for the rare body that has many.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _too_deep(body):
        raise malformed(f"it is nested over {MAX_DEPTH} levels deep")
    # While a body is decoded everything that is made stays: looking for garbage in it trebles the time.
    gc.disable()
    try:
        value = _decoder.decode(body.decode())
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None
    except RecursionError:
        raise malformed(f"it is nested over {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except _MalformedError as error:
        raise malformed(str(error)) from None
    finally:
        gc.enable()
    if not isinstance(value, dict):
        raise malformed("its top is something else")
    return value


_decoder = json.JSONDecoder(
    parse_int=_integer, parse_float=_decimal, parse_constant=_constant, object_pairs_hook=_unique
)


def to_json(data: Any) -> bytes:
    """The bytes of a value: times as RFC 3339 in UTC with `Z`, decimals as JSON numbers digit by digit.

    Raises:
        TypeError: the value holds something that has no JSON form.
    """
    return orjson.dumps(data, default=_exact, option=orjson.OPT_UTC_Z)


def _exact(value: Any) -> orjson.Fragment:
    # Never through a binary float.
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(f"{type(value).__name__} has no JSON form")
