"""Puts parts of the fast path in the place of functions of the reference: FAST_PATH_REPLACEMENTS of the settings.

Views, middlewares and the database backend need none of this: they are chosen by the handler and the settings.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import getattr_static

from django.conf import settings
from django.utils.module_loading import import_string

_MISSING = object()
_originals: dict[str, tuple[object, str, object]] = {}


def install() -> None:
    """Replaces what is not replaced yet. A replacement gets the original, and returns what takes its place."""
    for path, replacement in settings.FAST_PATH_REPLACEMENTS.items():
        if path not in _originals:
            owner, name = _find(path)
            original = getattr_static(owner, name)
            _originals[path] = (owner, name, vars(owner).get(name, _MISSING))
            setattr(owner, name, import_string(replacement)(original))


def uninstall() -> None:
    """Puts the originals back."""
    while _originals:
        _, (owner, name, original) = _originals.popitem()
        if original is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


@contextmanager
def uninstalled() -> Iterator[None]:
    """The reference alone, for a test."""
    uninstall()
    try:
        yield
    finally:
        install()


def _find(path: str) -> tuple[object, str]:
    """The module or class, and the name in it, of a dotted path such as `package.module.Class.method`."""
    module, _, name = path.rpartition(".")
    try:
        return import_module(module), name
    except ModuleNotFoundError:
        return import_string(module), name
