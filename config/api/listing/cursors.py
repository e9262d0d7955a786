"""The cursor: a position in a list, sealed so that a client can neither read nor change it.

The same position gives the same cursor, so that a page that has not changed keeps its bytes. The list, filters and
order of a position are authenticated with it.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from cryptography.exceptions import InvalidTag
from django.core.signing import b64_decode, b64_encode
from django.db.models import Model

from config.api.sealing import seal, unseal
from config.http.errors import MESSAGES, Detail, DomainError, ErrorCode

# The characters of a cursor, as a pattern.
CURSOR_CHARACTERS = "[A-Za-z0-9_=-]"
_SALT = "config.api.cursors"
_OPPOSITES = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}


class CursorPosition(NamedTuple):
    """The rows on one side of a sort key: `comparison` is `>`, `>=`, `<` or `<=`, as seen in list order."""

    comparison: str
    key: tuple[Any, ...]

    @property
    def backwards(self) -> bool:
        return self.comparison.startswith("<")

    @property
    def opposite(self) -> "CursorPosition":
        """All other rows."""
        return CursorPosition(_OPPOSITES[self.comparison], self.key)


# Most cursors are of a few lists; of the others there are as many as clients like.
@lru_cache(maxsize=256)
def build_binding(*facts: tuple[str, str]) -> bytes:
    """The context authenticated with the cursors of a list: its identity, its filters and its order."""
    return json.dumps(dict(facts), sort_keys=True).encode()


def seal_cursor(position: CursorPosition, binding: bytes) -> str:
    key = [value if isinstance(value, int) else str(value) for value in position.key]
    sealed = seal(orjson.dumps([position.comparison, *key]), _SALT, binding)
    return b64_encode(sealed).decode()


def open_cursor(cursor: str, binding: bytes, model: type[Model], columns: Sequence[str]) -> CursorPosition:
    """Opens a cursor that `seal_cursor` made with the same binding.

    Raises:
        DomainError: as `decrypt_cursor` raises it.
    """
    comparison, *key = decrypt_cursor(cursor, binding)
    fields: list[Any] = [model._meta.get_field(column) for column in columns]
    return CursorPosition(comparison, tuple([field.to_python(value) for field, value in zip(fields, key, strict=True)]))


def decrypt_cursor(cursor: str, binding: bytes) -> list[Any]:
    """The comparison and the key of a cursor, each value a number or a text.

    Raises:
        DomainError: INVALID_CURSOR when it was altered, made elsewhere, or made for another list, filter or order.
    """
    try:
        sealed = b64_decode(cursor.encode("ascii"))
        # Base64 has several spellings for the same bytes; only one of them was given out.
        if b64_encode(sealed).decode() != cursor:
            raise ValueError(cursor)
        opened: list[Any] = orjson.loads(unseal(sealed, _SALT, binding))
    except (ValueError, InvalidTag):
        raise invalid_cursor() from None
    return opened


def invalid_cursor() -> DomainError:
    code = ErrorCode.INVALID_CURSOR
    return DomainError(code, details=[Detail("cursor", MESSAGES[code])])
