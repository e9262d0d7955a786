"""Text that spreadsheets run as a formula when they open a file."""

import unicodedata


def escape_formula(cell: object) -> str:
    """Prefixes a cell that a spreadsheet would run as a formula with an apostrophe (CWE-1236)."""
    text = "" if cell is None else str(cell)
    if text[:1].isalnum():
        # Most cells; no form of these signs is among the letters and digits.
        return text
    # Some spreadsheets accept the full-width forms of these signs, too.
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if first.startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\r", "\n")) else text
