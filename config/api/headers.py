"""The headers of answers."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from django.http.response import ResponseHeaders
from django.utils.cache import patch_vary_headers


class Headers(ResponseHeaders):
    """Django's headers, with a quick way for what an answer has a score of: plain names and values of plain ASCII."""

    _store: dict[str, tuple[str, str]]

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._store = {}
        if given:
            for name, value in given.items():
                self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if type(value) is str and value.isascii() and value.isprintable() and name.isascii() and name.isprintable():
            self._store[name.lower()] = (name, value)
        else:
            super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        return str(name).lower() in self._store

    def get(self, name: str, default: Any = None) -> Any:
        found = self._store.get(name.lower())
        return default if found is None else found[1]

    def setdefault(self, name: str, value: Any) -> None:
        if name.lower() not in self._store:
            self[name] = value

    def items(self) -> Any:
        return self._store.values()


def vary_on(response: HttpResponse, *names: str) -> None:
    """Says that these headers of the request had a part in the answer."""
    present = response.headers.get("Vary")
    wanted = _vary(present, names)
    if wanted != present:
        response.headers["Vary"] = wanted


# A few different ones, and each of them for most of the answers.
@lru_cache(maxsize=64)
def _vary(present: str | None, names: tuple[str, ...]) -> str:
    response = HttpResponse(headers={} if present is None else {"Vary": present})
    patch_vary_headers(response, names)
    return response["Vary"]
