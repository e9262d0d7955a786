"""Addresses for headers."""

import re
from urllib.parse import quote

# RFC 3986, sections 3.3 and 3.4: what a path and a query may hold as they stand.
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"
_QUERY_CHARACTERS = f"{_PATH_CHARACTERS}?%"
# Nothing to quote, which is found out in a fraction of the time.
_PLAIN = re.compile(r"[A-Za-z0-9/_.~=&-]*")


def quote_address(path: str, query: str) -> str:
    """An address for a header, of a decoded path and a query as it was sent: bytes, read as Latin-1 (PEP 3333)."""
    sent = query and (query if _PLAIN.fullmatch(query) else quote(query.encode("latin-1"), safe=_QUERY_CHARACTERS))
    return f"{path if _PLAIN.fullmatch(path) else quote(path, safe=_PATH_CHARACTERS)}{'?' if sent else ''}{sent}"
