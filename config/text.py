"""What text may hold, for the API and the admin alike."""

import unicodedata

from django.core.exceptions import ValidationError

_LINE_CHARACTERS = frozenset("\t\n\r")
NOT_TEXT = "Must not hold NUL, other control characters or lone surrogates."


def is_plain(text: str, *, lines: bool = False) -> bool:
    """Whether text holds no control characters and no lone surrogates; `lines` lets tab and line breaks pass."""
    allowed = _LINE_CHARACTERS if lines else frozenset()
    # Cc: control characters, NUL among them. Cs: surrogates, which JSON can escape and UTF-8 cannot hold.
    return not any(
        unicodedata.category(character) in {"Cc", "Cs"} and character not in allowed
        for character in text
        if not character.isprintable()
    )


def validate_line(value: str) -> None:
    """For a column of one line."""
    if value.isspace() or not is_plain(value):
        raise ValidationError(NOT_TEXT if value.strip() else "Must not be blank.")


def validate_lines(value: str) -> None:
    """For a column of several lines."""
    if value.isspace() or not is_plain(value, lines=True):
        raise ValidationError(NOT_TEXT if value.strip() else "Must not be blank.")
