"""Response headers that are quick to set: plain names, and values of plain ASCII.

Replaces: `django.http.response.ResponseHeaders`. Buys: a response has a score of headers, each of which Django encodes
and decodes.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from django.http.response import ResponseHeaders

from config.http.headers import merge_vary

# The names of headers with the keys of their store, and values that need no encoding: clients have a part in some of
# these, so that not all of them are kept.
_keys: dict[str, str] = {}
_plain_values: set[str] = set()
_MAX_CACHED = 1024


class FastHeaders(ResponseHeaders):
    _store: dict[str, tuple[str, str]]

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._store = {}
        if headers:
            for name, value in headers.items():
                self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if name in _keys and (value in _plain_values or _is_plain(value)):
            self._store[_keys[name]] = (name, value)
        else:
            super().__setitem__(name, value)
            if len(_keys) < _MAX_CACHED and _is_plain(name):
                _keys[name] = name.lower()

    def __contains__(self, name: object) -> bool:
        return (_keys[name] if name in _keys else str(name).lower()) in self._store

    def get(self, name: str, default: Any = None) -> Any:
        key = _keys[name] if name in _keys else name.lower()
        return self._store[key][1] if key in self._store else default

    def setdefault(self, name: str, value: Any) -> None:
        if name not in self:
            self[name] = value

    def items(self) -> Any:
        return self._store.values()


def _is_plain(value: Any) -> bool:
    """Whether Django would take a value as it is; short ones are kept."""
    if type(value) is not str or not value.isascii() or not value.isprintable():
        return False
    if len(_plain_values) < _MAX_CACHED:
        _plain_values.add(value)
    return True


def set_headers(response: HttpResponse, headers: ResponseHeaders) -> None:
    """`config.http.headers.set_headers`, for headers that were made before."""
    response.headers._store.update(headers._store)


def set_default_headers(response: HttpResponse, headers: ResponseHeaders) -> None:
    """`config.http.headers.set_default_headers`, for headers that were made before."""
    response.headers._store = headers._store | response.headers._store


def vary_on(response: HttpResponse, *names: str) -> None:
    """`config.http.headers.vary_on`."""
    store = response.headers._store
    store["vary"] = _merge(store.get("vary"), names)


@lru_cache(maxsize=256)
def _merge(present: tuple[str, str] | None, names: tuple[str, ...]) -> tuple[str, str]:
    return "Vary", merge_vary(present and present[1], names)
