"""What a page shows of an answer as HTML: JSON with its colours, and addresses that click."""

import re
from collections.abc import Sequence

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

# JSON as orjson writes it, without blanks: what is not a string and not punctuation is a number, or a word.
_TOKEN = re.compile(r'("(?:[^"\\]+|\\.)*")(:?)|([{}\[\],])|([^{}\[\],:"]+)')
_INDENT = "  "
_HREF = '"href"'
_OPENING = frozenset("{[")
_TARGET = re.compile(r"<([^<>]*)>")
_RELATION = re.compile(r'<([^<>]*)>; rel="([^"]*)"')
# Of headers, those whose whole value is an address.
ADDRESSES = frozenset({"Location", "Content-Location"})


def is_address(text: str) -> bool:
    """Whether a link may lead there: to this host, or openly to another one; never `javascript:`."""
    return (text.startswith("/") and not text.startswith("//")) or text.startswith(("https://", "http://"))


def linked(address: str, text: str | None = None) -> SafeString:
    shown = address if text is None else text
    return format_html('<a href="{}">{}</a>', address, shown) if is_address(address) else escape(shown)


def header(name: str, value: str) -> SafeString:
    """The value of a header: in `Link`, each target leads where it says."""
    if name in ADDRESSES:
        return linked(value)
    if name != "Link":
        return escape(value)
    # Every second part is a target.
    parts = enumerate(_TARGET.split(value))
    return format_html_join(
        "", "{}", ((format_html("&lt;{}&gt;", linked(part)) if place % 2 else part,) for place, part in parts)
    )


def targets(link: str) -> Sequence[tuple[str, str]]:
    """The targets of one of our own `Link` headers, each with its relation."""
    return _RELATION.findall(link)


def json_as_html(text: str) -> SafeString:
    """JSON, line by line and with its tokens as they were sent: no number is read, none can be rounded.

    Args:
        text: JSON without blanks between its tokens.
    """
    out: list[str] = []
    depth, key, before = 0, "", ""
    for string, colon, mark, other in _TOKEN.findall(text):
        # A first member stands on a line of its own, and so does the bracket behind the last one.
        closes = mark in {"}", "]"}
        depth -= closes
        if before == "," or (before in _OPENING and not closes) or (closes and before not in _OPENING):
            out.append(f"\n{_INDENT * depth}")
        depth += mark in _OPENING
        if colon:
            out.append(f'<span class="key">{escape(string)}</span>: ')
            key = string
        elif string:
            out.append(f'<span class="string">{_value(string, key)}</span>')
        else:
            out.append(mark or f'<span class="plain">{escape(other)}</span>')
        before = mark
    return mark_safe("".join(out))  # noqa: S308 - every token was escaped


def _value(string: str, key: str) -> str:
    # An address of ours is written without escapes.
    return f'"{linked(string[1:-1])}"' if key == _HREF and "\\" not in string else escape(string)
