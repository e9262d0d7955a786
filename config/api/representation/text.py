"""What text may contain, in the API and in the admin."""

import re

from django.core.exceptions import ValidationError

BLANK = "Must not be blank."
NOT_TEXT = "Must not contain NUL, other control characters or lone surrogates."
NOT_VISIBLE = "Must not contain spaces or other invisible characters."
# Unicode's categories Cc, NUL among them, and Cs: surrogates, which JSON can escape and UTF-8 cannot hold. No later
# version of Unicode adds to these two.
_IN_NO_LINE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_IN_NO_LINES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# Invisible characters besides blanks: Unicode's Default_Ignorable_Code_Point, and the fillers, joiners and blanks that
# have another category. Unassigned and private characters are shown as a box.
INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_INVISIBLE_BEYOND_THE_BMP = (
    r"\U0001107f\U00013430-\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_VISIBLE = re.compile(f"[^\\s{INVISIBLE}{_INVISIBLE_BEYOND_THE_BMP}]")
_NOT_VISIBLE = re.compile(f"[\\s{INVISIBLE}{_INVISIBLE_BEYOND_THE_BMP}]")


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return _VISIBLE.search(text) is None


def is_plain(text: str, *, lines: bool = False) -> bool:
    """Whether text holds no control characters and no lone surrogates; `lines` lets tab and line breaks pass."""
    return (_IN_NO_LINES if lines else _IN_NO_LINE).search(text) is None


def is_storable(text: str) -> bool:
    """Whether PostgreSQL has a form for a text: it has none for NUL and lone surrogates."""
    return _UNSTORABLE.search(text) is None


def validate_visible(value: str) -> None:
    """For what identifies somebody: two values that look alike must not differ by what nobody sees."""
    # Not printable are controls, format characters, separators, and what is private or unassigned.
    if not value.isprintable() or _NOT_VISIBLE.search(value):
        raise ValidationError(NOT_VISIBLE)


def validate_line(value: str) -> None:
    """For a column of one line."""
    _validate(value, lines=False)


def validate_lines(value: str) -> None:
    """For a column of several lines."""
    _validate(value, lines=True)


def _validate(value: str, *, lines: bool) -> None:
    if is_blank(value):
        raise ValidationError(BLANK)
    if not is_plain(value, lines=lines):
        raise ValidationError(NOT_TEXT)
