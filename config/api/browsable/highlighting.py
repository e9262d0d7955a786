"""JSON and headers as HTML: coloured tokens and links."""

import re
from collections.abc import Mapping

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

# JSON as orjson writes it, without blanks: what is neither a string nor punctuation is a number or a literal.
_TOKEN = re.compile(r'("(?:[^"\\]+|\\.)*")(:?)|([{}\[\],])|([^{}\[\],:"]+)')
_INDENT = "  "
_HREF = '"href"'
_OPENING = frozenset("{[")
_TARGET = re.compile(r"<([^<>]*)>")
_TARGET_AND_RELATION = re.compile(r'<([^<>]*)>; rel="([^"]*)"')
# Headers whose whole value is an address.
_ADDRESS_HEADERS = frozenset({"Location", "Content-Location"})


def is_address(text: str) -> bool:
    """Whether a link may lead there: to this host or to an http(s) address, never to `javascript:` or `//host`."""
    return (text.startswith("/") and not text.startswith("//")) or text.startswith(("https://", "http://"))


def render_link(address: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', address, address) if is_address(address) else escape(address)


def render_header(name: str, value: str) -> SafeString:
    """A header's value, with a link where it is or contains an address.

    Args:
        name: the name of the header, in its usual case.
        value: its value.

    Returns:
        HTML.
    """
    if name in _ADDRESS_HEADERS:
        return render_link(value)
    if name != "Link":
        return escape(value)
    # Every second part that split() returns is a target.
    parts = enumerate(_TARGET.split(value))
    return format_html_join(
        "", "{}", ((format_html("&lt;{}&gt;", render_link(part)) if index % 2 else part,) for index, part in parts)
    )


def parse_links(header: str) -> Mapping[str, str]:
    """The target of each link in a `Link` header of this service, by its relation."""
    return {relation: target for target, relation in _TARGET_AND_RELATION.findall(header)}


def render_json(text: str) -> SafeString:
    """JSON with one member a line. Tokens are copied as they are: no number is parsed, so none can be rounded.

    Args:
        text: JSON without blanks between its tokens.

    Returns:
        HTML for a `pre` element.
    """
    out: list[str] = []
    depth, key, previous = 0, "", ""
    for string, colon, mark, literal in _TOKEN.findall(text):
        # The first member begins a line, and so does the bracket that closes a non-empty object or array.
        closes = mark in {"}", "]"}
        depth -= closes
        if previous == "," or (previous in _OPENING and not closes) or (closes and previous not in _OPENING):
            out.append(f"\n{_INDENT * depth}")
        depth += mark in _OPENING
        if colon:
            out.append(f'<span class="key">{escape(string)}</span>: ')
            key = string
        elif string:
            out.append(f'<span class="string">{_render_string(string, key)}</span>')
        else:
            out.append(mark or f'<span class="plain">{escape(literal)}</span>')
        previous = mark
    return mark_safe("".join(out))  # noqa: S308 - every token was escaped


def _render_string(string: str, key: str) -> str:
    # The service writes its own addresses without escapes.
    return f'"{render_link(string[1:-1])}"' if key == _HREF and "\\" not in string else escape(string)
