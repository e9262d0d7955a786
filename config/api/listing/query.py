"""The query parameters of one request."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from config.api.versions.table import Change, Version, has
from config.api.versions.versioning import VERSION_PARAMETER
from config.http.errors import Detail, invalid

# RFC 3986, section 3.4, but for what tells parameters apart: a query is repeated in every link of a page.
_AS_THEY_STAND = "/:@!$'()*,;~?"

# Nothing to encode, which is found out in a fraction of the time that encoding takes.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]*=[A-Za-z0-9_.-]*")
DRY_RUN = "dry_run"
INCLUDE = "include"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class QueryParameters:
    """Reads query parameters and keeps what is wrong with them until `check()` tells all of it at once.

    Args:
        query: the request's.
        version: that the request speaks, which says how strict to be; None is as strict as the first one.
        is_page: whether a person asks. A link to a page gathers parameters on its way, such as `utm_source`, and a form
            sends its empty fields, too: both are dropped, whatever the version says.

    Attributes:
        takes_later: whether the version has the parameters that came after the first one.
        uses_later: whether filters of the request are such.
    """

    def __init__(self, query: QueryDict, version: Version | None, *, is_page: bool = False) -> None:
        self.query = query
        self.is_page = is_page
        if is_page:
            # An empty cursor begins a list.
            self._drop(name for name in query if not query[name] and name != "cursor")
        self.problems: list[Detail] = []
        self._version = version
        # A version that ignores unknown parameters keeps to those that it came with.
        self.takes_later = has(version, Change.NO_UNKNOWN_NAMES)
        self.uses_later = False
        self._known = {VERSION_PARAMETER}

    def obey(self, change: Change) -> bool:
        return has(self._version, change)

    def get(self, name: str, *, opaque: bool = False) -> str | None:
        """The value of a parameter; None when it is absent, or refused: repeated or, unless opaque, no text."""
        self._known.add(name)
        if name not in self.query:
            return None
        # As `getlist`, which copies what it gives.
        values: Any = dict.__getitem__(self.query, name)
        value, *more = values
        if more:
            self.refuse(name, "Must not be repeated.")
            return None
        if not opaque and _CONTROL.search(value):
            self.refuse(name, "Must not contain NUL or other control characters.")
            return None
        return value

    def know(self, *names: str) -> None:
        """Takes parameters for known that this request does not need to read."""
        self._known.update(names)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        if value not in {None, "true", "false"}:
            self.refuse(name, "Must be true or false.")
        return default if value is None else value == "true"

    def parse_dry_run(self) -> bool:
        """Whether a write is only to be tried. `check` refuses it in a version that has no such parameter."""
        return self.takes_later and DRY_RUN in self.query and self.flag(DRY_RUN, default=False)

    def parse_fields(self, known: Sequence[str]) -> frozenset[str] | None:
        """The fields of `?fields=id,name`; None when the request does not choose. What is wrong with them is refused.

        Args:
            known: the names of all existing fields.
        """
        value = self.get("fields")
        if value is None:
            return None
        names = value.split(",")
        chosen = frozenset(names)
        if "" in chosen:
            self.refuse("fields", f"Must not contain an empty name. Available: {', '.join(known)}.")
        elif unknown := sorted(chosen.difference(known)):
            self.refuse("fields", f"Unknown: {', '.join(unknown)}. Available: {', '.join(known)}.")
        elif len(chosen) < len(names):
            self.refuse("fields", "Must not repeat a field.")
        return chosen

    def refuse(self, name: str, message: str) -> None:
        self.problems.append(Detail(name, message))

    def check(self) -> None:
        """Call it when every parameter was read: raises DomainError, a VALIDATION_ERROR, when anything was refused."""
        unknown = self.query.keys() - self._known
        if unknown and self.is_page:
            self._drop(unknown)
        elif unknown and self.takes_later:
            for name in sorted(unknown):
                self.refuse(name, f"Unknown parameter. Available: {', '.join(sorted(self._known))}.")
        elif DRY_RUN in unknown and self._version is not None:
            # Ignored like any other, it would let the request write.
            since = Change.NO_UNKNOWN_NAMES.since
            self.refuse(DRY_RUN, f"This version does not support dry runs. Use version {since} or omit the parameter.")
        if self.problems:
            # A parameter that several parts of a view read may have been refused by each of them.
            raise invalid(*dict.fromkeys(self.problems))

    def _drop(self, names: Iterable[str]) -> None:
        kept = self.query.copy()
        for name in names:
            del kept[name]
        self.query = kept

    def encode(self) -> Sequence[tuple[str, str]]:
        """Each parameter with its name, as in a query string."""
        texts = []
        for name, values in self.query.lists():
            for value in values:
                text = f"{name}={value}"
                texts.append((name, text if _PLAIN.fullmatch(text) else urlencode({name: value}, safe=_AS_THEY_STAND)))
        return texts
