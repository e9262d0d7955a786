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


def give(response: HttpResponse, headers: Headers) -> None:
    """Puts headers that were made before on an answer, all at once."""
    response.headers._store.update(headers._store)


def give_missing(response: HttpResponse, headers: Headers) -> None:
    """The same, but for those that the answer has."""
    store = response.headers._store
    for name, pair in headers._store.items():
        store.setdefault(name, pair)


def vary_on(response: HttpResponse, *names: str) -> None:
    """Says that these headers of the request had a part in the answer."""
    store = response.headers._store
    store["vary"] = _vary(store.get("vary"), names)


# A few different ones, and each of them for most of the answers.
@lru_cache(maxsize=64)
def _vary(present: tuple[str, str] | None, names: tuple[str, ...]) -> tuple[str, str]:
    response = HttpResponse(headers=dict([present]) if present else {})
    patch_vary_headers(response, names)
    return "Vary", response["Vary"]
