"""What text may hold, in the API and in the admin."""

import re

from django.core.exceptions import ValidationError

NOT_TEXT = "Must not hold NUL, other control characters or lone surrogates."
# Unicode's categories Cc, NUL among them, and Cs: surrogates, which JSON can escape and UTF-8 cannot hold. No later
# version of Unicode adds to these two.
_IN_NO_LINE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_IN_NO_LINES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def is_plain(text: str, *, lines: bool = False) -> bool:
    """Whether text holds no control characters and no lone surrogates; `lines` lets tab and line breaks pass."""
    return (_IN_NO_LINES if lines else _IN_NO_LINE).search(text) is None


def validate_line(value: str) -> None:
    """For a column of one line."""
    if value.isspace() or not is_plain(value):
        raise ValidationError(NOT_TEXT if value.strip() else "Must not be blank.")


def validate_lines(value: str) -> None:
    """For a column of several lines."""
    if value.isspace() or not is_plain(value, lines=True):
        raise ValidationError(NOT_TEXT if value.strip() else "Must not be blank.")
