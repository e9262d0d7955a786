"""Settings that are read as plain attributes.

Replaces: `LazySettings.__getattribute__`, which Django inherits from LazyObject for the special methods of wrapped
objects, and which is two calls. Buys: a request reads some twenty settings. What Django looks up it keeps in the
object, and drops when a setting is overridden.
"""

from collections.abc import Callable


def getattribute(original: Callable) -> Callable:
    """Takes the place of `__getattribute__` of an object whose special methods are not asked for."""
    return object.__getattribute__
