"""JSON as HTML: coloured tokens and links."""

import re
from collections.abc import Mapping

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

# JSON as orjson writes it, without blanks: what is neither a string nor punctuation is a number or a literal.
_TOKEN = re.compile(r'("(?:[^"\\]+|\\.)*")(:?)|([{}\[\],])|([^{}\[\],:"]+)')
_OPENING = frozenset("{[")
_TARGET_AND_RELATION = re.compile(r'<([^<>]*)>; rel="([^"]*)"')


def render_link(address: str) -> SafeString:
    """A link if it leads to this host or to an http(s) address, never to `javascript:` or `//host`."""
    is_safe = address.startswith(("/", "https://", "http://")) and not address.startswith("//")
    return format_html('<a href="{}">{}</a>', address, address) if is_safe else escape(address)


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
            out.append(f"\n{'  ' * depth}")
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
    return f'"{render_link(string[1:-1])}"' if key == '"href"' and "\\" not in string else escape(string)
