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
        if type(value) is str and value.isascii() and value.isprintable() and (key := _key(name)):
            self._store[key] = (name, value)
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


# The names are the service's own.
@lru_cache(maxsize=256)
def _key(name: str) -> str | None:
    """What a header is kept under; None for a name that Django has to look at."""
    return name.lower() if name.isascii() and name.isprintable() else None


def give(response: HttpResponse, headers: Headers) -> None:
    """Puts headers that were made before on an answer, all at once."""
    response.headers._store.update(headers._store)


def give_missing(response: HttpResponse, headers: Headers) -> None:
    """The same, but for those that the answer has."""
    response.headers._store = headers._store | response.headers._store


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
